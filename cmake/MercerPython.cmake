# SPDX-License-Identifier: BSD-3-Clause
# What the Python package needs of this build: the library, and the program for `python -m mercer`. They lie inside the
# package, so `pip install .` (see pyproject.toml) installs the component "python" alone.

# A wheel holds no symbolic links: the library has one name.
set_property(TARGET mercer PROPERTY VERSION)
set_property(TARGET mercer PROPERTY SOVERSION)
install(TARGETS mercer COMPONENT python LIBRARY DESTINATION mercer/lib)
# The licences of what is linked into the library (see tools/make-wheel).
set(MERCER_NOTICES "" CACHE FILEPATH "A file with the licences of bundled libraries, for the Python package")
if(MERCER_NOTICES)
  install(FILES "${MERCER_NOTICES}" COMPONENT python DESTINATION mercer/lib)
endif()
if(TARGET mercer_program)
  install(TARGETS mercer_program COMPONENT python RUNTIME DESTINATION mercer/bin)
endif()

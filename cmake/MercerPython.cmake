# SPDX-License-Identifier: BSD-3-Clause
# The parts of this build that the Python package contains: the library, and the program for `python -m mercer`. Both are
# installed inside the package, so `pip install .` (see pyproject.toml) installs only the component "python".

# A wheel cannot contain symbolic links, so the library has a single name.
set_property(TARGET mercer PROPERTY VERSION)
set_property(TARGET mercer PROPERTY SOVERSION)
install(TARGETS mercer COMPONENT python LIBRARY DESTINATION mercer/lib)
# The licenses of the libraries linked into the shared library (see tools/make-wheel).
set(MERCER_NOTICES "" CACHE FILEPATH "A file with the licenses of bundled libraries, for the Python package")
if(MERCER_NOTICES)
  install(FILES "${MERCER_NOTICES}" COMPONENT python DESTINATION mercer/lib)
endif()
if(TARGET mercer_program)
  install(TARGETS mercer_program COMPONENT python RUNTIME DESTINATION mercer/bin)
endif()

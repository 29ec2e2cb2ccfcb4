/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads cuBLAS and cuSOLVER from the loader's search path, NVIDIA's Python wheels, or the default folder of the
   toolkit. */
#include "backends/cuda/libraries.h"

#include "core/file/beside.h"

#include <dlfcn.h>
#include <string.h>

#define TEXT_OF(x)  TEXT_OF_(x)
#define TEXT_OF_(x) #x

/* Names with the major versions of the headers in the build: only these versions have functions of the declared
   types. */
static const char *const cublas_name = "libcublas.so." TEXT_OF(CUBLAS_VER_MAJOR);
static const char *const cusolver_name = "libcusolver.so." TEXT_OF(CUSOLVER_VER_MAJOR);

/* The PyPI packages that contain the libraries. */
#if CUBLAS_VER_MAJOR < 13
static const char *const cublas_wheel = "nvidia-cublas-cu12", *const cusolver_wheel = "nvidia-cusolver-cu12";
#else
static const char *const cublas_wheel = "nvidia-cublas", *const cusolver_wheel = "nvidia-cusolver";
#endif

/* Folders to search after the loader's path: NVIDIA's wheels, relative to this library's folder in the Python package
   (CUDA 13 wheels share one folder, earlier wheels have one folder each), and the default folder of the toolkit. */
static const char shared_folder[] = "../../nvidia/cu" TEXT_OF(CUBLAS_VER_MAJOR) "/lib";
static const char *const folders[] = {shared_folder, "../../nvidia/cublas/lib", "../../nvidia/cusolver/lib",
                                      "/usr/local/cuda/lib64", NULL};

static mercer_status load_library(mercer_context *context, const char *name, const char *wheel, void **out)
{
    *out = mrc_load_library(name, folders);
    if (*out) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                    "backend 'cuda' needs %s; run pip install %s, install the CUDA toolkit, or add the library's "
                    "folder to LD_LIBRARY_PATH",
                    name, wheel);
}

static mercer_status find_library(mercer_context *context, void *library, const char *name, void *out)
{
    void *function = dlsym(library, name);
    if (!function)
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED, "backend 'cuda': the CUDA libraries have no function %s",
                        name);
    memcpy(out, &function, sizeof function); /* ISO C has no cast from an object pointer to a function pointer */
    return MERCER_OK;
}

mercer_status mrc_cuda_load_libraries(mercer_context *context, mrc_cuda_libraries *out)
{
    memset(out, 0, sizeof *out);
    MRC_TRY(load_library(context, cublas_name, cublas_wheel, &out->cublas));
    MRC_TRY(load_library(context, cusolver_name, cusolver_wheel, &out->cusolver));
#define FIND_IN_CUBLAS(name)   MRC_TRY(find_library(context, out->cublas, #name, &out->name));
#define FIND_IN_CUSOLVER(name) MRC_TRY(find_library(context, out->cusolver, #name, &out->name));
    MRC_CUBLAS_FUNCTIONS(FIND_IN_CUBLAS)
    MRC_CUSOLVER_FUNCTIONS(FIND_IN_CUSOLVER)
    return MERCER_OK;
}

void mrc_cuda_unload_libraries(mrc_cuda_libraries *libraries)
{
    if (libraries->cusolver) dlclose(libraries->cusolver);
    if (libraries->cublas) dlclose(libraries->cublas);
    memset(libraries, 0, sizeof *libraries);
}

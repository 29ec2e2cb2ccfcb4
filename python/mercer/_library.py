# SPDX-License-Identifier: BSD-3-Clause
"""The C library: its types and functions as ``include/mercer/mercer.h`` declares them, and its errors as exceptions.

This module is a transcript of the header, in the header's order, and nothing else knows ctypes types by heart.
``python/tests/test_header.py`` parses the header and compares every constant, field, offset and argument.
"""

from __future__ import annotations

import ctypes as C
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# ---- 2. Status -------------------------------------------------------------------------------------------------

STATUS = {
    "MERCER_OK": 0,
    "MERCER_ERROR_ARGUMENT": 1,
    "MERCER_ERROR_SHAPE": 2,
    "MERCER_ERROR_DTYPE": 3,
    "MERCER_ERROR_OVERLAP": 4,
    "MERCER_ERROR_DATA": 5,
    "MERCER_ERROR_KERNEL": 6,
    "MERCER_ERROR_MEMORY": 7,
    "MERCER_ERROR_UNSUPPORTED": 8,
    "MERCER_ERROR_NUMERIC": 9,
    "MERCER_ERROR_CALLBACK": 10,
    "MERCER_ERROR_INTERNAL": 11,
    "MERCER_ERROR_IO": 12,
    "MERCER_ERROR_FORMAT": 13,
    "MERCER_ERROR_MISSING": 14,
    "MERCER_ERROR_MISMATCH": 15,
    "MERCER_ERROR_COMM": 16,
}

# Enums of the header, by the names of their types; all are int in C.
ENUMS = {
    "mercer_switch": {"MERCER_AUTO": 0, "MERCER_ON": 1, "MERCER_OFF": 2},
    "mercer_option_type": {
        "MERCER_OPTION_INTEGER": 1,
        "MERCER_OPTION_NUMBER": 2,
        "MERCER_OPTION_SWITCH": 3,
        "MERCER_OPTION_NAME": 4,
    },
    "mercer_log_level": {
        "MERCER_LOG_ERROR": 1,
        "MERCER_LOG_WARNING": 2,
        "MERCER_LOG_INFO": 3,
        "MERCER_LOG_DEBUG": 4,
    },
    "mercer_dtype": {"MERCER_F64": 1, "MERCER_F32": 2, "MERCER_F16": 3, "MERCER_U8": 4},
    "mercer_memory": {"MERCER_HOST": 0, "MERCER_CUDA": 1},
    "mercer_kernel_id": {
        "MERCER_KERNEL_LAPLACE": 1,
        "MERCER_KERNEL_GAUSSIAN": 2,
        "MERCER_KERNEL_MATERN32": 3,
        "MERCER_KERNEL_MATERN52": 4,
        "MERCER_KERNEL_EXPPOWER": 5,
        "MERCER_KERNEL_CAUCHY": 6,
        "MERCER_KERNEL_RATIONAL_QUADRATIC": 7,
        "MERCER_KERNEL_POLYNOMIAL": 8,
        "MERCER_KERNEL_LINEAR": 9,
        "MERCER_KERNEL_NTK": 10,
        "MERCER_KERNEL_NNGP": 11,
        "MERCER_KERNEL_CALLBACK_DISTANCE": 100,
        "MERCER_KERNEL_CALLBACK_INNER": 101,
    },
    "mercer_task": {
        "MERCER_TASK_AUTO": 0,
        "MERCER_TASK_CLASSIFICATION": 1,
        "MERCER_TASK_REGRESSION": 2,
        "MERCER_TASK_UNLABELLED": 3,
    },
}

AUTO, ON, OFF = 0, 1, 2
F64, F32, F16, U8 = 1, 2, 3, 4
PLAN_TEXT = 4096

_size, _int, _i32, _i64, _u64, _double = C.c_size_t, C.c_int, C.c_int32, C.c_int64, C.c_uint64, C.c_double
_text, _any = C.c_char_p, C.c_void_p
_texts = C.POINTER(C.c_char_p)
_doubles, _i32s, _i64s, _u64s, _ints, _sizes = (C.POINTER(t) for t in (_double, _i32, _i64, _u64, _int, _size))


# ---- 3. Context ------------------------------------------------------------------------------------------------


class mercer_allocator(C.Structure):
    _fields_ = [("allocate", _any), ("release", _any), ("user", _any)]


mercer_log_sink = C.CFUNCTYPE(None, _any, _int, _text)


class mercer_context_options(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("threads", _int),
        ("backend", _text),
        ("isa", _text),
        ("allocator", mercer_allocator),
        ("log", mercer_log_sink),
        ("log_user", _any),
        ("log_level", _int),
        ("arithmetic", _text),
    ]


class mercer_context_info(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("backend", _text),
        ("isa", _text),
        ("threads", _int),
        ("bytes_now", _i64),
        ("bytes_peak", _i64),
    ]


# ---- 4. Matrix views -------------------------------------------------------------------------------------------


class mercer_matrix(C.Structure):
    _fields_ = [
        ("data", _any),
        ("rows", _i64),
        ("cols", _i64),
        ("ld", _i64),
        ("dtype", _int),
        ("memory", _int),
        ("reserved", _i64 * 2),
    ]


# ---- 5. Kernel functions ---------------------------------------------------------------------------------------


class mercer_kernel_block(C.Structure):
    _fields_ = [
        ("rows", _i64),
        ("cols", _i64),
        ("ld", _i64),
        ("values", _doubles),
        ("x_sqnorms", _doubles),
        ("z_sqnorms", _doubles),
    ]


mercer_kernel_callback = C.CFUNCTYPE(_int, _any, C.POINTER(mercer_kernel_block))


class mercer_kernel(C.Structure):
    _fields_ = [
        ("id", _i32),
        ("degree", _i32),
        ("depth", _i32),
        ("reserved0", _i32),
        ("bandwidth", _double),
        ("gamma", _double),
        ("alpha", _double),
        ("scale", _double),
        ("offset", _double),
        ("bias", _double),
        ("callback", mercer_kernel_callback),
        ("callback_user", _any),
        ("reserved", _i64 * 4),
    ]


# ---- 8. Sources of samples -------------------------------------------------------------------------------------


class mercer_batch(C.Structure):
    _fields_ = [("X", mercer_matrix), ("Y", mercer_matrix), ("weights", _doubles), ("rows", _i64s)]


class mercer_source(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("rows", _i64),
        ("features", _i64),
        ("outputs", _i64),
        ("dtype", _int),
        ("restart", C.CFUNCTYPE(_int, _any, _i64)),
        ("next", C.CFUNCTYPE(_int, _any, _i64, C.POINTER(mercer_batch))),
        ("last_error", C.CFUNCTYPE(_any, _any)),
        ("release", C.CFUNCTYPE(None, _any)),
        ("user", _any),
        ("skip", C.CFUNCTYPE(_int, _any, _i64)),
    ]


# ---- 9. Model files --------------------------------------------------------------------------------------------


class mercer_save_options(C.Structure):
    _fields_ = [("struct_size", _size), ("centers", _int), ("weights", _int)]


# ---- 11. Datasets ----------------------------------------------------------------------------------------------


class mercer_dataset_options(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("x", _text),
        ("y", _text),
        ("format", _text),
        ("y_format", _text),
        ("raw", _text),
        ("target", _text),
        ("header", _int),
        ("task", _int),
        ("features", _i64),
        ("labels", _texts),
        ("label_count", _i64),
        ("first", _i64),
        ("rows", _i64),
        ("memory", _i64),
        ("columns", _texts),
        ("column_count", _i64),
    ]


class mercer_dataset_info(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("rows", _i64),
        ("features", _i64),
        ("outputs", _i64),
        ("dtype", _int),
        ("task", _int),
        ("format", _text),
        ("labels", _texts),
        ("features_named", _texts),
        ("height", _i64),
        ("width", _i64),
        ("channels", _i64),
        ("mapped", _int),
        ("bytes", _i64),
        ("targets_named", _texts),
        ("unused", _i64),
        ("unused_named", _texts),
        ("distinct", _i64),
    ]


# ---- 12. Streams -----------------------------------------------------------------------------------------------


class mercer_stream_options(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("seed", _u64),
        ("preprocess", _any),
        ("augment", _text),
        ("height", _i64),
        ("width", _i64),
        ("channels", _i64),
        ("samples", _i64),
        ("block", _i64),
        ("prefetch", _int),
    ]


# ---- 13. Centers -----------------------------------------------------------------------------------------------

center_progress = C.CFUNCTYPE(_int, _any, _i64, _i64, _double)


class mercer_center_options(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("method", _text),
        ("seed", _u64),
        ("kernel", C.POINTER(mercer_kernel)),
        ("labels", _i32s),
        ("classes", _i64),
        ("iterations", _i64),
        ("batch", _i64),
        ("memory", _i64),
        ("progress", center_progress),
        ("progress_user", _any),
        ("comm", _any),
        ("total_centers", _i64),
    ]


class mercer_center_report(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("iterations", _i64),
        ("error", _double),
        ("reseeded", _i64),
        ("seconds", _double),
    ]


# ---- 14. Training ----------------------------------------------------------------------------------------------


class mercer_progress(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("epoch", _i64),
        ("epochs", _i64),
        ("samples", _i64),
        ("seconds", _double),
        ("train_loss", _double),
        ("train_accuracy", _double),
        ("validation_loss", _double),
        ("validation_accuracy", _double),
        ("projection_residual", _double),
        ("step", _double),
        ("pass_samples", _i64),
        ("pass_total", _i64),
        ("steps", _i64),
        ("projections", _i64),
        ("phase", _text),
        ("phase_share", _double),
    ]


mercer_progress_callback = C.CFUNCTYPE(_int, _any, C.POINTER(mercer_progress))


class mercer_train_options(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("solver", _text),
        ("projector", _text),
        ("epochs", _i64),
        ("batch", _i64),
        ("nystrom", _i64),
        ("eigenpairs", _i64),
        ("period", _i64),
        ("projector_nystrom", _i64),
        ("projector_eigenpairs", _i64),
        ("projector_passes", _i64),
        ("projector_tolerance", _double),
        ("projector_block", _i64),
        ("carry", _int),
        ("step_factor", _double),
        ("lambda", _double),
        ("average", _int),
        ("decay", _int),
        ("polish", _i64),
        ("seed", _u64),
        ("memory", _i64),
        ("cache", _int),
        ("classification", _int),
        ("validation_X", C.POINTER(mercer_matrix)),
        ("validation_Y", C.POINTER(mercer_matrix)),
        ("patience", _i64),
        ("progress", mercer_progress_callback),
        ("progress_user", _any),
        ("progress_seconds", _double),
        ("checkpoint", _text),
        ("checkpoint_seconds", _double),
        ("checkpoint_note", _text),
        ("validation_weights", C.POINTER(_double)),
    ]


class mercer_option(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("name", _text),
        ("alias", _text),
        ("type", _int),
        ("offset", _size),
        ("words", _text),
        ("limit", _double),
        ("help", _text),
    ]


class mercer_plan(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("solver", C.c_char * 16),
        ("projector", C.c_char * 16),
        ("epochs", _i64),
        ("batch", _i64),
        ("nystrom", _i64),
        ("eigenpairs", _i64),
        ("period", _i64),
        ("projector_nystrom", _i64),
        ("projector_eigenpairs", _i64),
        ("projector_passes", _i64),
        ("projector_block", _i64),
        ("carry", _int),
        ("average", _int),
        ("decay", _int),
        ("cache_data", _int),
        ("cache_centers", _int),
        ("precision", _int),
        ("step_factor", _double),
        ("lambda", _double),
        ("bytes", _i64),
        ("flops", _double),
        ("seconds", _double),
        ("text", C.c_char * PLAN_TEXT),
    ]


class mercer_shape(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("samples", _i64),
        ("centers", _i64),
        ("features", _i64),
        ("outputs", _i64),
        ("points", _int),
        ("weights", _int),
        ("shards", _int),
    ]


class mercer_speed(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("product", _double),
        ("plain", _double),
        ("to_device", _double),
        ("from_device", _double),
    ]


class mercer_report(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("plan", mercer_plan),
        ("epochs", _i64),
        ("samples", _i64),
        ("steps", _i64),
        ("projections", _i64),
        ("train_loss", _double),
        ("train_accuracy", _double),
        ("validation_loss", _double),
        ("validation_accuracy", _double),
        ("projection_residual_mean", _double),
        ("projection_residual_last", _double),
        ("tail", _double),
        ("beta", _double),
        ("halvings", _i64),
        ("stopped", _int),
        ("seconds", _double),
        ("setup_seconds", _double),
        ("forward_seconds", _double),
        ("gradient_seconds", _double),
        ("projection_seconds", _double),
        ("validation_seconds", _double),
        ("flops", _double),
        ("peak_bytes", _i64),
    ]


# ---- 15. Ranks -------------------------------------------------------------------------------------------------


class mercer_comm_options(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("kind", _text),
        ("shards", _int),
        ("deadline", _double),
        ("exchange", _text),
        ("leaving", C.CFUNCTYPE(None, _any, _int, _text)),
        ("leaving_user", _any),
    ]


class mercer_comm_info(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("rank", _int),
        ("ranks", _int),
        ("shards", _int),
        ("broken", _int),
        ("left_code", _int),
        ("exchanges", _i64),
        ("bytes_sent", _i64),
        ("bytes_received", _i64),
        ("direct", _int),
    ]


class mercer_network(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("ranks", _int),
        ("shards", _int),
        ("bytes_per_second", _double),
        ("latency", _double),
        ("validation_rows", _i64),
    ]


class mercer_rank_plan(C.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("ranks", _int),
        ("shards", _int),
        ("centers_a_rank", _i64),
        ("batch_bytes", _double),
        ("projection_bytes", _double),
        ("epoch_bytes", _double),
        ("batch_seconds", _double),
        ("projection_seconds", _double),
        ("epoch_seconds", _double),
        ("compute_seconds", _double),
        ("projection_share", _double),
        ("shared_bytes", _double),
        ("replicated_bytes", _double),
        ("checkpoint_bytes", _double),
    ]


# ---- Functions -------------------------------------------------------------------------------------------------


def _p(kind: Any) -> Any:
    return C.POINTER(kind)


_matrix, _kernel = _p(mercer_matrix), _p(mercer_kernel)
# Handles are opaque: void pointers. A constructor's `out` is the address of one.
_handle, _out = _any, _p(_any)

# name: result, arguments
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "mercer_version": (_text, []),
    "mercer_status_string": (_text, [_int]),
    "mercer_context_options_init": (_int, [_p(mercer_context_options), _size]),
    "mercer_context_create": (_int, [_out, _p(mercer_context_options)]),
    "mercer_context_free": (None, [_handle]),
    "mercer_last_error": (_text, [_handle]),
    "mercer_context_query": (_int, [_handle, _p(mercer_context_info)]),
    "mercer_device_count": (_int, [_text]),
    "mercer_matrix_view": (mercer_matrix, [_any, _i64, _i64, _int]),
    "mercer_kernel_parse": (_int, [_handle, _kernel, _text]),
    "mercer_kernel_print": (_int, [_handle, _kernel, _any, _size, _sizes]),
    "mercer_kernel_from_callback": (_int, [_handle, _kernel, _int, mercer_kernel_callback, _any]),
    "mercer_kernel_value": (_int, [_handle, _doubles, _kernel, _i64, _doubles, _doubles]),
    "mercer_kernel_eval": (_int, [_handle, _matrix, _kernel, _matrix, _matrix]),
    "mercer_kernel_matmul": (_int, [_handle, _matrix, _kernel, _matrix, _matrix, _matrix]),
    "mercer_kernel_diagonal": (_int, [_handle, _matrix, _kernel, _matrix]),
    "mercer_model_create": (_int, [_out, _handle, _kernel, _matrix, _i64, _int]),
    "mercer_model_free": (None, [_handle]),
    "mercer_model_predict": (_int, [_handle, _matrix, _matrix]),
    "mercer_model_classify": (_int, [_handle, _i32s, _matrix]),
    "mercer_model_kernel": (_kernel, [_handle]),
    "mercer_model_centers": (mercer_matrix, [_handle]),
    "mercer_model_weights": (mercer_matrix, [_handle]),
    "mercer_model_set_targets": (_int, [_handle, _doubles, _doubles]),
    "mercer_model_target_offset": (_doubles, [_handle]),
    "mercer_model_target_scale": (_doubles, [_handle]),
    "mercer_target_moments": (_int, [_handle, _matrix, _doubles, _doubles, _doubles]),
    "mercer_source_from_matrices": (_int, [_p(mercer_source), _handle, _matrix, _matrix, _doubles, _u64]),
    "mercer_source_from_labels": (_int, [_p(mercer_source), _handle, _matrix, _i32s, _i64, _doubles, _u64]),
    "mercer_source_release": (None, [_p(mercer_source)]),
    "mercer_model_save": (_int, [_handle, _text, _p(mercer_save_options)]),
    "mercer_model_load": (_int, [_out, _handle, _text]),
    "mercer_file_header": (_int, [_handle, _text, _any, _size, _sizes]),
    "mercer_model_set_labels": (_int, [_handle, _texts, _i64]),
    "mercer_model_labels": (_texts, [_handle, _i64s]),
    "mercer_model_set_feature_names": (_int, [_handle, _texts, _i64]),
    "mercer_model_feature_names": (_texts, [_handle, _i64s]),
    "mercer_model_set_target_names": (_int, [_handle, _texts, _i64]),
    "mercer_model_target_names": (_texts, [_handle, _i64s]),
    "mercer_model_match": (_int, [_handle, _i64s, _texts, _i64]),
    "mercer_model_set_note": (_int, [_handle, _text]),
    "mercer_model_note": (_text, [_handle]),
    "mercer_preprocess_fit": (_int, [_out, _handle, _text, _handle]),
    "mercer_preprocess_fit_matrix": (_int, [_out, _handle, _text, _matrix]),
    "mercer_preprocess_auto": (_text, [_text, _int]),
    "mercer_preprocess_free": (None, [_handle]),
    "mercer_preprocess_fold": (_int, [_handle, _kernel, _ints]),
    "mercer_preprocess_kernel": (_kernel, [_handle]),
    "mercer_preprocess_spec": (_text, [_handle]),
    "mercer_preprocess_dtype": (_int, [_handle, _int]),
    "mercer_preprocess_apply": (_int, [_handle, _matrix, _matrix]),
    "mercer_model_set_preprocess": (_int, [_handle, _handle]),
    "mercer_model_preprocess": (_handle, [_handle]),
    "mercer_dataset_options_init": (_int, [_p(mercer_dataset_options), _size]),
    "mercer_dataset_open": (_int, [_out, _handle, _p(mercer_dataset_options)]),
    "mercer_dataset_synthesize": (_int, [_out, _handle, _text, _i64, _i64, _u64]),
    "mercer_dataset_take": (_int, [_out, _handle, _i64s, _i64]),
    "mercer_dataset_free": (None, [_handle]),
    "mercer_dataset_query": (_int, [_handle, _p(mercer_dataset_info)]),
    "mercer_dataset_samples": (mercer_matrix, [_handle]),
    "mercer_dataset_labels": (_i32s, [_handle]),
    "mercer_dataset_read": (_int, [_handle, _handle, _i64s, _i64, _matrix, _matrix, _i32s]),
    "mercer_dataset_target_moments": (_int, [_handle, _doubles, _doubles]),
    "mercer_dataset_fingerprint": (_int, [_handle, _u64s]),
    "mercer_dataset_write_npy": (_int, [_handle, _text, _text]),
    "mercer_dataset_write": (_int, [_handle, _text, _text]),
    "mercer_matrix_write_npy": (_int, [_handle, _matrix, _text]),
    "mercer_stream_options_init": (_int, [_p(mercer_stream_options), _size]),
    "mercer_source_from_dataset": (_int, [_p(mercer_source), _handle, _p(mercer_stream_options)]),
    "mercer_center_options_init": (_int, [_p(mercer_center_options), _size]),
    "mercer_choose_centers": (
        _int,
        [_handle, _matrix, _matrix, _p(mercer_center_options), _p(mercer_center_report)],
    ),
    "mercer_choose_centers_from": (
        _int,
        [_handle, _handle, _matrix, _p(mercer_center_options), _p(mercer_center_report)],
    ),
    "mercer_nearest": (_int, [_handle, _i32s, _doubles, _matrix, _matrix]),
    "mercer_median_distance": (_int, [_handle, _doubles, _matrix, _u64]),
    "mercer_train_options_init": (_int, [_p(mercer_train_options), _size]),
    "mercer_train_option": (C.POINTER(mercer_option), [_int]),
    "mercer_train_plan": (_int, [_handle, _p(mercer_plan), _i64, _p(mercer_train_options)]),
    "mercer_shape_plan": (_int, [_handle, _p(mercer_plan), _p(mercer_shape), _p(mercer_train_options)]),
    "mercer_measure": (_int, [_handle, _p(mercer_speed), _kernel, _p(mercer_shape)]),
    "mercer_trainer_create": (_int, [_out, _handle, _handle, _p(mercer_train_options)]),
    "mercer_trainer_free": (None, [_handle]),
    "mercer_trainer_plan": (_int, [_handle, _p(mercer_plan), _p(mercer_source)]),
    "mercer_trainer_fit": (_int, [_handle, _p(mercer_report), _p(mercer_source)]),
    "mercer_trainer_step": (_int, [_handle, _matrix, _matrix, _doubles]),
    "mercer_trainer_finish": (_int, [_handle]),
    "mercer_trainer_report": (_int, [_handle, _p(mercer_report)]),
    "mercer_trainer_resume": (_int, [_handle, _text]),
    "mercer_trainer_spectrum": (_int, [_handle, _doubles, _i64, _i64s]),
    "mercer_comm_options_init": (_int, [_p(mercer_comm_options), _size]),
    "mercer_comm_open": (_int, [_out, _handle, _p(mercer_comm_options)]),
    "mercer_comm_create_virtual": (_int, [_out, _handle, _int]),
    "mercer_comm_create_local": (_int, [_out, _p(_handle), _int, _p(mercer_comm_options)]),
    "mercer_comm_free": (None, [_handle]),
    "mercer_comm_launched": (_int, [_ints]),
    "mercer_comm_query": (_int, [_handle, _p(mercer_comm_info)]),
    "mercer_comm_device_bytes": (_int, [_handle, _i64s]),
    "mercer_comm_share": (_int, [_handle, _i64, _i64s, _i64s]),
    "mercer_comm_shard_count": (_int, [_handle, _i64]),
    "mercer_model_create_shared": (_int, [_out, _handle, _kernel, _matrix, _i64, _i64, _int]),
    "mercer_model_load_shared": (_int, [_out, _handle, _text]),
    "mercer_model_size": (_i64, [_handle]),
    "mercer_plan_ranks": (
        _int,
        [_handle, _p(mercer_rank_plan), _p(mercer_plan), _p(mercer_shape), _p(mercer_network)],
    ),
    "mercer_comm_broadcast": (_int, [_handle, _any, _i64]),
    "mercer_comm_any": (_int, [_handle, _int, _ints]),
    "mercer_comm_agree": (_int, [_handle, _text, _any, _i64]),
    "mercer_comm_leave": (_int, [_handle, _int, _text]),
}


def _load() -> C.CDLL:
    """The library inside the package, or the one that MERCER_LIBRARY names (for working on Mercer itself)."""
    name = "libmercer.dylib" if sys.platform == "darwin" else "libmercer.so"
    path = os.environ.get("MERCER_LIBRARY") or str(Path(__file__).parent / "lib" / name)
    try:
        library = C.CDLL(path)
    except OSError as error:
        raise ImportError(f"Mercer's library cannot be loaded from {path}: {error}") from error
    for function, (result, arguments) in FUNCTIONS.items():
        try:
            entry = getattr(library, function)
        except AttributeError:
            raise ImportError(f"{path} has no {function}: it is of another version than this package") from None
        entry.restype, entry.argtypes = result, arguments
    return library


lib = _load()

# ---- Errors as exceptions --------------------------------------------------------------------------------------

_EXCEPTIONS: dict[int, type[Exception]] = {
    STATUS["MERCER_ERROR_DTYPE"]: TypeError,
    STATUS["MERCER_ERROR_MEMORY"]: MemoryError,
    STATUS["MERCER_ERROR_UNSUPPORTED"]: NotImplementedError,
    STATUS["MERCER_ERROR_NUMERIC"]: FloatingPointError,
    STATUS["MERCER_ERROR_CALLBACK"]: RuntimeError,
    STATUS["MERCER_ERROR_INTERNAL"]: RuntimeError,
    STATUS["MERCER_ERROR_IO"]: OSError,
    STATUS["MERCER_ERROR_MISSING"]: FileNotFoundError,
}


def check(status: int, context: Any) -> None:
    """Raises what a status stands for, with the library's message; ValueError unless the table says otherwise."""
    if status == 0:
        return
    message = lib.mercer_last_error(context) or lib.mercer_status_string(status)
    raise _EXCEPTIONS.get(status, ValueError)(message.decode("utf-8", "replace"))


def fields(struct: Any) -> list[str]:
    """The names of a struct's fields, without its size."""
    return [entry[0] for entry in struct._fields_ if entry[0] != "struct_size"]


def text(value: str | os.PathLike[str], name: str) -> bytes:
    """A text or path for C, which ends at a zero byte."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be a text, not {type(value).__name__}")
    raw = os.fsencode(value)
    if b"\0" in raw:
        raise ValueError(f"{name} contains a zero byte")
    return raw


def read_text(ask: Callable[[Any, int, Any], int], context: Any) -> str:
    """A text of unknown length: asks for its size, then for itself."""
    needed = C.c_size_t(0)
    ask(None, 0, C.byref(needed))
    if needed.value == 0:  # not a question of room: this call fails again, and says why
        check(ask(None, 0, C.byref(needed)), context)
    room = C.create_string_buffer(max(1, needed.value))
    check(ask(room, len(room), C.byref(needed)), context)
    return room.value.decode("utf-8", "replace")

# SPDX-License-Identifier: BSD-3-Clause
"""A struct without struct_size is rejected with a message that says how to set it."""

import ctypes as C

import numpy as np
import pytest

import mercer
from mercer import _arrays as A
from mercer import _library as L

Z = np.arange(8.0).reshape(4, 2)
SIZED = sorted(
    name
    for name, kind in vars(L).items()
    if isinstance(kind, type) and issubclass(kind, C.Structure) and kind._fields_[0][0] == "struct_size"
)


class Things:
    """The objects that the calls below need, and functions that call the library with them."""

    def __init__(self):
        self.model = mercer.Model("laplace:bandwidth=1", Z)
        self.trainer = mercer.Trainer(self.model)
        self.data = mercer.Dataset.synthesize("spirals", 10)
        self.context = self.model.context.handle
        self.points, self.scratch = A.view(Z), np.empty((2, 2))
        self.two = A.view(self.scratch)
        self.out = C.c_void_p()
        self.shape = L.mercer_shape(samples=10, centers=4, features=2, outputs=1)
        self.plan = L.mercer_plan()
        L.check(L.lib.mercer_plan_shape(self.context, self.plan, self.shape, None), self.context)
        self.network = L.mercer_network(ranks=2, bytes_per_second=1e9)

    def comm(self):
        handle = C.c_void_p()
        L.check(L.lib.mercer_comm_create(C.byref(handle), self.context, None), self.context)
        return handle

    def query_comm(self, struct):
        handle = self.comm()
        status = L.lib.mercer_comm_query(handle, struct)
        L.lib.mercer_comm_free(handle)
        return status

    def evaluated(self, name, *arguments):
        """Call a query function on an evaluation of one row and return the status."""
        handle, one = C.c_void_p(), np.ones((1, 1))
        options = L.mercer_evaluation_options(task=L.TASK_REGRESSION, outputs=1, rows=1)
        L.check(L.lib.mercer_evaluation_create(C.byref(handle), self.context, options), self.context)
        L.check(L.lib.mercer_evaluation_add(handle, A.view(one), A.view(one), None, None), self.context)
        status = getattr(L.lib, name)(handle, *arguments)
        L.lib.mercer_evaluation_free(handle)
        return status

    def importance(self, options, info):
        """Compute the permutation importance of a model with one output on two rows, query it if info is given, return the status."""
        handle, X = C.c_void_p(), np.zeros((2, 2))
        data = mercer.Dataset._of_arrays(self.model.context, X, Y=np.arange(2.0).reshape(2, 1))
        call = L.lib.mercer_permutation_importance
        status = call(C.byref(handle), self.model.handle, data.handle, options)
        if info is not None:
            L.check(status, self.context)
            status = L.lib.mercer_importance_query(handle, info)
        L.lib.mercer_importance_free(handle)
        return status

    def shap(self, options, info):
        """Prepare the Shapley values of a model, query them if info is given, return the status."""
        handle = C.c_void_p()
        status = L.lib.mercer_model_shap(C.byref(handle), self.model.handle, None, options)
        if info is not None:
            L.check(status, self.context)
            status = L.lib.mercer_shap_query(handle, info)
        L.lib.mercer_shap_free(handle)
        return status

    def report(self, **parts):
        """Fit with a report that points to the given parts and return the status."""
        report = L.mercer_fit_report(**parts)
        return L.lib.mercer_fit(C.byref(self.out), self.context, self.data.handle, None, report)

    def prepared(self, name, *arguments):
        """Call a function on a prepared fit to three rows and return the status."""
        handle = C.c_void_p()
        rows = np.arange(3.0).reshape(3, 1)
        data = mercer.Dataset._of_arrays(self.model.context, rows, Y=rows)
        L.check(L.lib.mercer_fitting_open(C.byref(handle), self.context, data.handle, None), self.context)
        L.check(L.lib.mercer_fitting_prepare(handle, None), self.context)
        status = getattr(L.lib, name)(handle, *arguments)
        L.lib.mercer_fitting_free(handle)
        return status

    def listed(self, call, info):
        """Describe the first entry of a list; such functions return no status."""
        return L.OK if call(info, 0) else L.ERROR_ARGUMENT

    def choose(self, options, report):
        return L.lib.mercer_choose_centers(self.context, self.two, self.points, options, report)


def create_with(things, allocator):
    options = L.mercer_context_options(allocator=C.cast(allocator, C.POINTER(L.mercer_allocator)))
    return L.lib.mercer_context_create(C.byref(things.out), options)


# One call per struct that reads or fills it.
CALLS = {
    "mercer_allocator": create_with,
    "mercer_context_options": lambda t, s: L.lib.mercer_context_create(C.byref(t.out), s),
    "mercer_context_info": lambda t, s: L.lib.mercer_context_query(t.context, s),
    "mercer_kernel_info": lambda t, s: t.listed(L.lib.mercer_kernel_list, s),
    "mercer_solver_info": lambda t, s: t.listed(L.lib.mercer_solver_list, s),
    "mercer_format_info": lambda t, s: t.listed(L.lib.mercer_format_list, s),
    "mercer_model_info": lambda t, s: L.lib.mercer_model_query(t.model.handle, s),
    "mercer_preprocess_info": lambda t, s: L.lib.mercer_preprocess_query(None, s),
    "mercer_source": lambda t, s: L.lib.mercer_trainer_fit(t.trainer.handle, s, None),
    "mercer_save_options": lambda t, s: L.lib.mercer_model_save(t.model.handle, b"/nowhere/model", s),
    "mercer_export_options": lambda t, s: L.lib.mercer_model_export(t.model.handle, b"/nowhere/model.c", s),
    "mercer_dataset_options": lambda t, s: L.lib.mercer_dataset_open(C.byref(t.out), t.context, s),
    "mercer_dataset_info": lambda t, s: L.lib.mercer_dataset_query(t.data.handle, s),
    "mercer_dataset_arrays": lambda t, s: L.lib.mercer_dataset_from_arrays(C.byref(t.out), t.context, s),
    "mercer_fit_options": lambda t, s: L.lib.mercer_fit(C.byref(t.out), t.context, t.data.handle, s, None),
    "mercer_fit_report": lambda t, s: L.lib.mercer_fit(C.byref(t.out), t.context, t.data.handle, None, s),
    "mercer_search_report": lambda t, s: t.report(search=C.cast(s, C.POINTER(L.mercer_search_report))),
    "mercer_fit_parts": lambda t, s: t.prepared("mercer_fitting_parts", s),
    "mercer_decision": lambda t, s: t.prepared("mercer_fitting_decision", 0, s, C.byref(C.c_int())),
    "mercer_stream_options": lambda t, s: L.lib.mercer_source_from_dataset(L.mercer_source(), t.data.handle, s),
    "mercer_center_options": lambda t, s: t.choose(s, None),
    "mercer_center_report": lambda t, s: t.choose(None, s),
    "mercer_train_options": lambda t, s: L.lib.mercer_trainer_create(C.byref(t.out), t.model.handle, None, s),
    "mercer_plan": lambda t, s: L.lib.mercer_plan_shape(t.context, s, t.shape, None),
    "mercer_shape": lambda t, s: L.lib.mercer_plan_shape(t.context, t.plan, s, None),
    "mercer_speed": lambda t, s: L.lib.mercer_measure_speed(t.context, s, t.model.kernel.struct, t.shape),
    "mercer_report": lambda t, s: L.lib.mercer_trainer_report(t.trainer.handle, s),
    "mercer_evaluation_options": lambda t, s: L.lib.mercer_evaluation_create(C.byref(t.out), t.context, s),
    "mercer_metrics": lambda t, s: t.evaluated("mercer_evaluation_query", s),
    "mercer_output_metrics": lambda t, s: t.evaluated("mercer_evaluation_output", s, 0),
    "mercer_permutation_options": lambda t, s: t.importance(s, None),
    "mercer_importance_info": lambda t, s: t.importance(None, s),
    "mercer_shap_options": lambda t, s: t.shap(s, None),
    "mercer_shap_info": lambda t, s: t.shap(None, s),
    "mercer_comm_options": lambda t, s: L.lib.mercer_comm_create(C.byref(t.out), t.context, s),
    "mercer_comm_info": Things.query_comm,
    "mercer_network": lambda t, s: L.lib.mercer_plan_ranks(t.context, L.mercer_rank_plan(), t.plan, t.shape, s),
    "mercer_rank_plan": lambda t, s: L.lib.mercer_plan_ranks(t.context, s, t.plan, t.shape, t.network),
}


# Structs of calls without a context.
NO_CONTEXT = [
    "mercer_context_options", "mercer_allocator", "mercer_kernel_info", "mercer_solver_info", "mercer_format_info",
    "mercer_preprocess_info",
]  # fmt: skip
HANDED_OUT = {"mercer_progress", "mercer_batch", "mercer_kernel_block", "mercer_option"}  # filled by the library, including struct_size


def test_every_sized_struct_is_called():
    assert set(SIZED) == {*CALLS, *HANDED_OUT}
    structs = {name for name, kind in vars(L).items() if hasattr(kind, "_fields_")}
    frozen = {"mercer_matrix", "mercer_kernel", "mercer_table_column"}  # structs with a fixed layout and without struct_size
    groups = {kind.__name__ for _, kind in L.mercer_fit_options._fields_ if hasattr(kind, "_fields_")}
    assert structs - set(SIZED) == frozen | groups


def test_groups_have_few_fields_and_reserved_words():
    for _, kind in L.mercer_fit_options._fields_:
        if hasattr(kind, "_fields_"):
            assert len(kind._fields_) <= 12 and kind._fields_[-1][0] == "reserved"


def test_reserved_words_must_be_zero():
    things = Things()
    for group, kind in L.mercer_fit_options._fields_:
        if hasattr(kind, "_fields_"):
            options = L.mercer_fit_options()
            words = getattr(options, group).reserved
            words[len(words) - 1] = 1
            assert L.lib.mercer_fit_check(things.context, options) == L.ERROR_ARGUMENT
            assert f"options: {group}: " in L.lib.mercer_last_error(things.context).decode()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_message_names_the_struct(name):
    things, struct = Things(), getattr(L, name)(struct_size=0)
    status = CALLS[name](things, C.byref(struct))
    owner = dict.fromkeys(NO_CONTEXT) | {"mercer_dataset_info": things.data.context.handle}
    owner["mercer_stream_options"] = owner["mercer_dataset_info"]
    message = L.lib.mercer_last_error(owner.get(name, things.context)).decode()
    assert status == L.ERROR_ARGUMENT
    assert "struct_size" in message and f"sizeof({name})" in message

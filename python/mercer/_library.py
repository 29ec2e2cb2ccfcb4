# SPDX-License-Identifier: BSD-3-Clause
"""The C library, as include/mercer/*.h declares it. Written by tools/make-python-library: do not edit."""

from typing import TYPE_CHECKING, Any

from ._runtime import as_dict, bind, check, fields, text

__all__ = ["as_dict", "check", "fields", "text"]

ENUMS = """
status: OK=0 ERROR_ARGUMENT=1 ERROR_SHAPE=2 ERROR_DTYPE=3 ERROR_OVERLAP=4 ERROR_DATA=5 ERROR_KERNEL=6 ERROR_MEMORY=7 ERROR_UNSUPPORTED=8 ERROR_NUMERIC=9 ERROR_CALLBACK=10 ERROR_INTERNAL=11 ERROR_IO=12 ERROR_FORMAT=13 ERROR_MISSING=14 ERROR_MISMATCH=15 ERROR_COMM=16
switch: AUTO=0 ON=1 OFF=2
log_level: LOG_ERROR=1 LOG_WARNING=2 LOG_INFO=3 LOG_DEBUG=4
dtype: F64=1 F32=2 F16=3 U8=4
memory: HOST=0 CUDA=1
kernel_id: KERNEL_CALLBACK_DISTANCE=100 KERNEL_CALLBACK_INNER=101
task: TASK_AUTO=0 TASK_CLASSIFICATION=1 TASK_REGRESSION=2 TASK_UNLABELED=3
stop: STOP_FINISHED=0 STOP_PATIENCE=1 STOP_CALLBACK=2 STOP_BUDGET=3
names: NAMES_LABELS=1 NAMES_FEATURES=2 NAMES_TARGETS=3
solver_kind: SOLVER_NONE=0 SOLVER_DIRECT=1 SOLVER_STEPS=2 SOLVER_BATCHES=3 SOLVER_ON_SAMPLES=4
option_type: OPTION_INTEGER=1 OPTION_NUMBER=2 OPTION_SWITCH=3 OPTION_NAME=4
constants: PLAN_TEXT=4096 MEMBERS=8 KERNEL_TEXT=256 SHARDS_AUTO=-1
"""

CALLBACKS = """
log_sink=v(p,i,s) kernel_callback=i(p,*kernel_block) progress_callback=i(p,*progress)
"""

STRUCTS = """
allocator: struct_size=z allocate=p(p,z,z) release=v(p,p) user=p
context_options: struct_size=z threads=i backend=s isa=s allocator=*allocator log=log_sink log_user=p log_level=i arithmetic=s deferred=l
matrix: data=p rows=q cols=q ld=q dtype=i memory=l reserved=q2
kernel_block: struct_size=z rows=q cols=q ld=q values=*d x_sqnorms=*d z_sqnorms=*d
kernel: id=l degree=l depth=l reserved0=l bandwidth=d gamma=d alpha=d scale=d offset=d bias=d callback=kernel_callback callback_user=p p=d q=d reserved=q2
dataset_options: struct_size=z x=s y=s format=s y_format=s raw=s target=s header=i task=i features=q labels=*s label_count=q first=q rows=q memory=q columns=*s column_count=q kinds=s only=s weight_column=s id_column=s missing=s schema=s spill=q group_column=s time_column=s mapping=i
dataset_arrays: struct_size=z X=*matrix Y=*matrix labels=*l classes=q label_names=*s feature_names=*s weights=*d schema=s groups=*d times=*d
dataset_info: struct_size=z rows=q features=q outputs=q dtype=i task=i format=s labels=*s feature_names=*s height=q width=q channels=q mapped=i bytes=q target_names=*s unused=q unused_names=*s distinct=q schema=s left_out=q
progress: struct_size=z stage=s done=q total=q error=d epoch=q epochs=q samples=q seconds=d train_loss=d train_accuracy=d validation_loss=d validation_accuracy=d projection_residual=d step=d pass_samples=q pass_total=q steps=q projections=q phase=s phase_share=d
train_options: struct_size=z solver=s projector=s epochs=q batch=q nystrom=q eigenpairs=q period=q projector_nystrom=q projector_eigenpairs=q projector_passes=q projector_tolerance=d projector_block=q carry=i step_factor=d lambda=d average=i decay=i polish=q seed=Q memory=q cache=i classification=i validation_X=*matrix validation_Y=*matrix patience=q progress=progress_callback progress_user=p progress_seconds=d checkpoint=s checkpoint_seconds=d checkpoint_note=s validation_weights=*d converge=i
plan: struct_size=z solver=c16 projector=c16 epochs=q batch=q nystrom=q eigenpairs=q period=q projector_nystrom=q projector_eigenpairs=q projector_passes=q projector_block=q carry=i average=i decay=i cache_data=i cache_centers=i precision=i step_factor=d lambda=d bytes=q flops=d seconds=d text=c4096 changes=q
report: struct_size=z plan=*plan epochs=q samples=q steps=q projections=q train_loss=d train_accuracy=d validation_loss=d validation_accuracy=d projection_residual_mean=d projection_residual_last=d tail=d beta=d halvings=q stopped=i seconds=d setup_seconds=d forward_seconds=d gradient_seconds=d projection_seconds=d validation_seconds=d flops=d peak_bytes=q
fit_data: preprocess=s target_transform=s class_weight=s merge=i augment=s samples=q height=q width=q channels=q reserved=q4
fit_validation: data=p fraction=d calibrate=i intervals=i calibrate_to=s score=i reserved=q3
fit_kernel: spec=s function=*kernel bandwidth=d metric=*matrix blend=*matrix reserved=q3
fit_centers: count=q method=s given=p type=i iterations=q batch=q reserved=q4
fit_search: tune=i learn_features=i effort=i budget=d reserved=q4
fit_run: seed=Q memory=q precision=i checkpoint=s model=p comm=p shards=i progress=progress_callback progress_user=p reserved=q4
fit_options: struct_size=z data=fit_data validation=fit_validation kernel=fit_kernel centers=fit_centers search=fit_search train=*train_options run=fit_run
search_report: struct_size=z skipped=s error=d ridge=d seconds=d rows=q held_out=q cut=i steps=*matrix centers=q3 center_errors=d3 more_centers=d
center_report: struct_size=z iterations=q error=d reseeded=q seconds=d
fit_report: struct_size=z training=*report search=*search_report choice=*center_report rows=q validation_rows=q samples=q centers=q largest_centers=q memory=q device_memory=q points=i kernel=c256 preprocess=c64 center_method=c16 temperature=d effort=i members=q predicted_seconds=d curvature=d
model_info: struct_size=z features=q outputs=q size=q labels=*s label_count=q feature_names=*s target_names=*s target_count=q schema=s note=s kernel=*kernel preprocess=p centers=matrix weights=matrix target_offset=*d target_scale=*d target_curve=s temperature=d calibrated=i class_shift=*d interval_task=i interval_rows=d members=*p member_count=q curvature=d
save_options: struct_size=z centers=i weights=i
export_options: struct_size=z format=s name=s
preprocess_info: struct_size=z spec=s features=q width=q identity=i metric=matrix kernel=*kernel blend=matrix
format_info: struct_size=z name=s samples=i targets=i
table_column: name=s kind=s values=*d codes=*l words=*s word_count=q
batch: struct_size=z X=matrix Y=matrix weights=*d rows=*q
source: struct_size=z rows=q features=q outputs=q dtype=i restart=i(p,q) next=i(p,q,*batch) last_error=s(p) release=v(p) user=p skip=i(p,q)
stream_options: struct_size=z seed=Q preprocess=p augment=s height=q width=q channels=q samples=q block=q prefetch=i
context_info: struct_size=z backend=s isa=s threads=i bytes_now=q bytes_peak=q device=i stream=p device_seconds=d library_seconds=d
kernel_info: struct_size=z name=s example=s parameters=s6
center_options: struct_size=z method=s seed=Q kernel=*kernel labels=*l classes=q iterations=q batch=q memory=q progress=progress_callback progress_user=p comm=p total_centers=q
solver_info: struct_size=z name=s description=s kind=i
option: struct_size=z name=s alias=s type=i offset=z words=s limit=d help=s
shape: struct_size=z samples=q centers=q features=q outputs=q points=i weights=i shards=i on_samples=i
speed: struct_size=z product=d plain=d to_device=d from_device=d median=d
fit_parts: struct_size=z train=p validation=p model=p trainer=p scores=p
decision: struct_size=z stage=s name=s origin=s value=s text=s
metrics: struct_size=z rows=q outputs=q ranked_rows=q task=i weight=d mse=d rmse=d mae=d r2=d error_median=d error_90=d error_99=d error_max=d accuracy=d log_loss=d brier=d auc=d f1=d calibration_error=d temperature=d interval=d coverage=d interval_size=d curvature=d interval_score=d
output_metrics: struct_size=z weight=d mse=d rmse=d mae=d r2=d error_median=d error_90=d error_99=d error_max=d precision=d recall=d f1=d auc=d coverage=d interval_size=d interval_score=d
evaluation_options: struct_size=z task=i outputs=q rows=q temperature=d interval=d radius=*d memory=q progress=progress_callback progress_user=p class_shift=*d curvature=d
permutation_options: struct_size=z repeats=q seed=Q progress=progress_callback progress_user=p
importance_info: struct_size=z columns=q names=*s drops=*d errors=*d score=d task=i rows=q repeats=q
shap_options: struct_size=z rows=q
shap_info: struct_size=z columns=q outputs=q names=*s base=*d background_rows=q from_centers=i transformed=i terms=q error=d
comm_options: struct_size=z kind=s shards=i deadline=d exchange=s leaving=v(p,i,s) leaving_user=p
comm_info: struct_size=z rank=i ranks=i shards=i broken=i left_code=i exchanges=q bytes_sent=q bytes_received=q direct=i
network: struct_size=z ranks=i shards=i bytes_per_second=d latency=d validation_rows=q
rank_plan: struct_size=z ranks=i shards=i centers_a_rank=q batch_bytes=d projection_bytes=d epoch_bytes=d batch_seconds=d projection_seconds=d epoch_seconds=d compute_seconds=d projection_share=d shared_bytes=d replicated_bytes=d checkpoint_bytes=d
"""

FUNCTIONS = """
version=s()
status_string=s(i)
context_create=i(*p,*context_options) context_free=v(p) context_query=i(p,*context_info) context_wait=i(p,p)
last_error=s(p) last_error_field=s(p)
warning=s(p,i,*s)
clear_warnings=v(p)
matrix_view=matrix(p,q,q,i) matrix_write_npy=i(p,*matrix,s)
kernel_parse=i(*kernel,p,s) kernel_print=i(p,p,z,*z,*kernel) kernel_from_callback=i(*kernel,p,i,kernel_callback,p) kernel_list=i(*kernel_info,i) kernel_eval=i(p,*matrix,*kernel,*matrix,*matrix) kernel_matmul=i(p,*matrix,*kernel,*matrix,*matrix,*matrix) kernel_diagonal=i(p,*matrix,*kernel,*matrix)
dataset_open=i(*p,p,*dataset_options) dataset_from_arrays=i(*p,p,*dataset_arrays) dataset_free=v(p) dataset_query=i(p,*dataset_info) dataset_samples=matrix(p) dataset_labels=*l(p) dataset_synthesize=i(*p,p,s,q,q,Q) dataset_from_columns=i(*p,p,*table_column,q,q,s) dataset_take=i(*p,p,*q,q) dataset_read=i(p,*matrix,*matrix,*l,p,*q,q) dataset_least_error=i(p,*d,q) dataset_fingerprint=i(p,*Q) dataset_checksum=i(p,*Q) dataset_write=i(p,s,s)
fit=i(*p,p,p,*fit_options,*fit_report) fit_check=i(p,*fit_options) fit_plan=i(p,*plan,*dataset_info,*fit_options,*fit_report)
model_free=v(p) model_predict=i(p,*matrix,*matrix) model_classify=i(p,*l,*matrix) model_probabilities=i(p,*matrix,*matrix) model_query=i(p,*model_info) model_save=i(p,s,*save_options) model_load=i(*p,p,p,s) model_export=i(p,s,*export_options) model_set_preprocess=i(p,p) model_create=i(*p,p,p,*kernel,*matrix,q,i) model_set_targets=i(p,*d,*d) model_file_header=i(p,p,z,*z,s) model_set_names=i(p,i,*s,q) model_match=i(p,*q,*s,q) model_set_note=i(p,s) model_set_schema=i(p,s) model_set_calibration=i(p,d,d) model_interval=i(p,*d,d) model_gradient=i(p,*matrix,*matrix) model_shap=i(*p,p,*matrix,*shap_options)
preprocess_fit=i(*p,p,s,p) preprocess_free=v(p) preprocess_query=i(p,*preprocess_info) preprocess_apply=i(p,*matrix,*matrix)
format_list=i(*format_info,i)
source_from_arrays=i(*source,p,*dataset_arrays,Q) source_free=v(*source) source_from_dataset=i(*source,p,*stream_options)
device_count=i(s)
free_memory=q()
parse_bytes=i(*q,p,s)
target_moments=i(p,*d,*d,*matrix,*d)
choose_centers=i(p,*matrix,*matrix,*center_options,*center_report) choose_centers_from=i(p,*matrix,p,*center_options,*center_report)
nearest_rows=i(p,*l,*d,*kernel,*matrix,*matrix)
median_distance=i(p,*d,*kernel,*matrix,Q)
solver_kind_of=i(s) solver_list=i(*solver_info,i)
projector_list=i(*solver_info,i)
train_option=*option(i)
plan_shape=i(p,*plan,*shape,*train_options) plan_ranks=i(p,*rank_plan,*plan,*shape,*network)
measure_speed=i(p,*speed,*kernel,*shape)
trainer_create=i(*p,p,p,*train_options) trainer_free=v(p) trainer_plan=i(p,*plan,*source) trainer_fit=i(p,*source,*report) trainer_step=i(p,*matrix,*matrix,*d) trainer_finish=i(p) trainer_report=i(p,*report) trainer_resume=i(p,s) trainer_checkpoint=i(p) trainer_spectrum=i(p,*d,q,*q)
fitting_open=i(*p,p,p,*fit_options) fitting_prepare=i(p,*plan) fitting_run=i(p,*fit_report) fitting_centers=i(p,*matrix) fitting_query=i(p,*fit_report) fitting_parts=i(p,*fit_parts) fitting_decision=i(p,i,*decision,*i) fitting_take_model=i(p,*p) fitting_free=v(p)
calibrate=i(p,*d,*d,*matrix,*l,*d)
class_sets=i(p,*l,*matrix,d)
evaluate=i(*p,p,p,*evaluation_options)
evaluation_create=i(*p,p,*evaluation_options) evaluation_add=i(p,*matrix,*matrix,*l,*d) evaluation_free=v(p) evaluation_query=i(p,*metrics) evaluation_output=i(p,*output_metrics,q) evaluation_confusion=*d(p) evaluation_curve=i(p,s,q,*d,*d,q,*q)
column_texts_open=i(*p,p,*dataset_options,s) column_texts_names=*s(p,*q) column_texts_next=i(p,**s) column_texts_free=v(p)
permutation_importance=i(*p,p,p,*permutation_options)
importance_query=i(p,*importance_info) importance_free=v(p)
partial_dependence=i(p,p,q,*d,*matrix,*q)
shap_query=i(p,*shap_info) shap_values=i(p,*matrix,*matrix) shap_interactions=i(p,*matrix,*matrix) shap_free=v(p)
comm_create=i(*p,p,*comm_options) comm_create_local=i(*p,*p,i,*comm_options) comm_free=v(p) comm_launched=i(*i) comm_query=i(p,*comm_info) comm_share=i(p,*q,*q,q) comm_broadcast=i(p,p,q) comm_any=i(p,*i,i) comm_agree=i(p,s,p,q) comm_leave=i(p,i,s)
"""

bind(globals())

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

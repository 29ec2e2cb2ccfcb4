#include "export/export.h"
mercer_status mrc_export_onnx(const mercer_model *model, const char *path)
{
    return mrc_fail(model->context, MERCER_ERROR_UNSUPPORTED, "%s", path);
}

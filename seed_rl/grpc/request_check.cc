#include "seed_rl/grpc/request_check.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace seed_rl {
namespace {

using tensorflow::DataType;
using tensorflow::TensorShape;

constexpr int64_t kMaxItems = int64_t{1} << 31;

// NumPy's name: what the other end of the wire calls it.
std::string DTypeName(DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_HALF:
      return "float16";
    case tensorflow::DT_FLOAT:
      return "float32";
    case tensorflow::DT_DOUBLE:
      return "float64";
    default:
      return tensorflow::DataTypeString(dtype);
  }
}

// Whether a message could bring data of that many items, if no size were 0. A 0 would hide sizes
// that overflow where TensorFlow multiplies only some of them, and checks fatally.
bool IsPossible(const WireTensor& tensor) {
  int64_t items = 1;
  for (int32_t i = 0; i < tensor.rank; ++i) {
    const int64_t size = tensor.shape[i];
    if (size < 0 || size > kMaxItems / items) return false;
    items *= std::max<int64_t>(size, 1);
  }
  return true;
}

absl::Status CheckTensor(const ArgumentSpec& spec, const WireTensor& tensor) {
  TensorShape shape;
  if (!IsPossible(tensor) ||
      !TensorShape::BuildTensorShape(absl::MakeSpan(tensor.shape, tensor.rank), &shape).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(spec.description, ", got an impossible shape"));
  }
  const DataType dtype = static_cast<DataType>(tensor.dtype);
  if (dtype != spec.dtype || !spec.shape.IsCompatibleWith(shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.description, ", got ", DTypeName(dtype), " ", shape.DebugString()));
  }
  const uint64_t item_bytes = tensorflow::DataTypeSize(dtype);
  const uint64_t items = shape.num_elements();
  if (tensor.size != items * item_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(spec.description, ", got ", tensor.size,
                                                   " bytes for shape ", shape.DebugString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CountRows(const MethodSpec& spec, const WireRequest& request) {
  const int64_t rows = request.arguments[0].shape[0];
  for (int32_t i = 1; i < request.num_arguments; ++i) {
    const int64_t other_rows = request.arguments[i].shape[0];
    if (other_rows != rows) {
      return absl::InvalidArgumentError(absl::StrCat(spec.arguments[i].description, " with ", rows,
                                                     " rows like the first, got ", other_rows));
    }
  }
  if (rows < 1 || rows > spec.max_batch_size) {
    return absl::InvalidArgumentError(absl::StrCat("method '", spec.name, "': expected 1 to ",
                                                   spec.max_batch_size, " rows, got ", rows));
  }
  return rows;
}

}  // namespace

absl::StatusOr<int64_t> CheckRequest(const MethodSpec& spec, const WireRequest& request) {
  const auto expected = static_cast<int32_t>(spec.arguments.size());
  if (request.num_arguments != expected) {
    return absl::InvalidArgumentError(absl::StrCat("method '", spec.name, "': expected ", expected,
                                                   " tensors, got ", request.num_arguments));
  }
  for (int32_t i = 0; i < expected; ++i) {
    absl::Status status = CheckTensor(spec.arguments[i], request.arguments[i]);
    if (!status.ok()) return status;
  }
  return spec.batched() ? CountRows(spec, request) : 1;
}

}  // namespace seed_rl

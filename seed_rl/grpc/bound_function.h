// A tf.function that C++ can run without the Python interpreter.

#ifndef SEED_RL_GRPC_BOUND_FUNCTION_H_
#define SEED_RL_GRPC_BOUND_FUNCTION_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace seed_rl {

class BoundFunction {
 public:
  // Instantiates `function` over all devices of the process. `captures` are its last arguments:
  // the handles of its variables, and constants. All other arguments and all results are on the
  // CPU.
  static absl::StatusOr<std::unique_ptr<BoundFunction>> Create(
      tensorflow::OpKernelContext* context, const tensorflow::NameAttrList& function,
      std::vector<tensorflow::Tensor> captures);

  // Blocks until the function has run or `cancellation` has ended it.
  absl::Status Run(const std::vector<tensorflow::Tensor>& arguments,
                   tensorflow::CancellationManager* cancellation,
                   std::vector<tensorflow::Tensor>* results);

 private:
  BoundFunction() = default;
  absl::Status Instantiate(const tensorflow::NameAttrList& function);

  // A copy of the caller's runtime, since that one lives no longer than the call. Destroyed in
  // reverse order: the runtime refers to the library.
  std::unique_ptr<tensorflow::FunctionLibraryDefinition> library_;
  std::unique_ptr<tensorflow::ProcessFunctionLibraryRuntime> process_runtime_;
  tensorflow::FunctionLibraryRuntime* runtime_ = nullptr;
  tensorflow::FunctionLibraryRuntime::Handle handle_ = tensorflow::kInvalidHandle;
  std::vector<tensorflow::Tensor> captures_;
};

}  // namespace seed_rl

#endif  // SEED_RL_GRPC_BOUND_FUNCTION_H_

#include "seed_rl/grpc/bound_function.h"

#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/grappler/optimizers/meta_optimizer.h"

namespace seed_rl {

using tensorflow::FunctionLibraryRuntime;
using tensorflow::Tensor;

absl::StatusOr<std::unique_ptr<BoundFunction>> BoundFunction::Create(
    tensorflow::OpKernelContext* context, const tensorflow::NameAttrList& function,
    std::vector<Tensor> captures) {
  std::unique_ptr<BoundFunction> bound(new BoundFunction());
  bound->captures_ = std::move(captures);
  absl::Status status = context->function_library()->Clone(
      &bound->library_, &bound->process_runtime_, &bound->runtime_);
  if (status.ok()) status = bound->Instantiate(function);
  if (!status.ok()) return status;
  return bound;
}

absl::Status BoundFunction::Instantiate(const tensorflow::NameAttrList& function) {
  const tensorflow::FunctionDef* definition = library_->Find(function.name());
  if (definition == nullptr) return absl::NotFoundError(function.name());
  const std::string& cpu = runtime_->device()->name();
  const int num_arguments = definition->signature().input_arg_size();

  FunctionLibraryRuntime::InstantiateOptions options;
  options.target = cpu;
  options.is_multi_device_function = true;
  options.default_device_to_target = false;
  options.input_devices.assign(num_arguments - captures_.size(), cpu);
  for (const Tensor& capture : captures_) {
    const bool is_resource = capture.dtype() == tensorflow::DT_RESOURCE;
    options.input_devices.push_back(
        is_resource ? capture.scalar<tensorflow::ResourceHandle>()().device() : cpu);
  }
  options.output_devices.assign(definition->signature().output_arg_size(), cpu);
  // The optimizations that a call from Python would get, such as fused convolutions.
  options.optimize_graph_fn = [this, name = function.name()](
                                  std::vector<std::string> ret_nodes,
                                  std::vector<std::string> keep_nodes,
                                  tensorflow::FunctionLibraryDefinition* library,
                                  const tensorflow::DeviceSet& devices,
                                  tensorflow::Device* cpu_device,
                                  std::unique_ptr<tensorflow::Graph>* graph) {
    tensorflow::grappler::GrapplerItem::OptimizationOptions optimization;
    // A function's side effects are wanted even if none of its results depends on them.
    optimization.allow_pruning_stateful_and_dataset_ops = false;
    // Nested functions are optimized when they are instantiated themselves.
    optimization.optimize_function_library = false;
    return tensorflow::grappler::OptimizeGraph(
        std::move(ret_nodes), std::move(keep_nodes), library, devices, cpu_device,
        *runtime_->config_proto(), name, optimization, graph);
  };
  return runtime_->Instantiate(function.name(), tensorflow::AttrSlice(&function.attr()), options,
                               &handle_);
}

absl::Status BoundFunction::Run(const std::vector<Tensor>& arguments,
                                tensorflow::CancellationManager* cancellation,
                                std::vector<Tensor>* results) {
  std::vector<Tensor> all_arguments(arguments);
  all_arguments.insert(all_arguments.end(), captures_.begin(), captures_.end());

  // An error cancels the rest of its own run, and must not cancel every run after it.
  tensorflow::CancellationManager own_cancellation(cancellation);
  FunctionLibraryRuntime::Options options;
  options.cancellation_manager = &own_cancellation;
  options.create_rendezvous = true;
  options.runner = runtime_->runner();
  tensorflow::ScopedStepContainer step_container(
      options.step_id,
      [this](const std::string& name) { runtime_->device_mgr()->ClearContainers({name}); });
  options.step_container = &step_container;

  absl::Status status;
  absl::Notification done;
  runtime_->Run(options, handle_, all_arguments, results, [&](const absl::Status& run_status) {
    status = run_status;
    done.Notify();
  });
  done.WaitForNotification();
  return status;
}

}  // namespace seed_rl

// The server as TensorFlow ops. server.py is their only caller and documents what they do.

#include <string>
#include <utility>
#include <vector>

#include "seed_rl/grpc/bound_function.h"
#include "seed_rl/grpc/server.h"
#include "tensorflow/core/common_runtime/input_colocation_exemption_registry.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace seed_rl {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::ResourceHandle;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;

REGISTER_OP("SeedRlServer").Output("server: resource").SetIsStateful();

REGISTER_OP("SeedRlServerBind")
    .Input("server: resource")
    .Input("captures: captures_types")
    .Attr("captures_types: list(type) >= 0")
    .Attr("functions: list(func) >= 1")
    .Attr("num_captures: list(int) >= 1")
    .Attr("method: string")
    .Attr("descriptions: list(string) >= 0")
    .Attr("dtypes: list(type) >= 0")
    .Attr("shapes: list(shape) >= 0")
    .Attr("max_batch_size: int")
    .Attr("timeout_us: int")
    .SetIsStateful();

REGISTER_OP("SeedRlServerStart")
    .Input("server: resource")
    .Input("addresses: string")
    .Input("description: string")
    .Input("security: string")
    .Attr("max_request_bytes: int")
    .Output("ports: int32")
    .SetIsStateful();

REGISTER_OP("SeedRlServerShutdown")
    .Input("server: resource")
    .Input("final: bool")
    .SetIsStateful();

class ServerOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    Tensor* handle;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &handle));
    // Counts references: the last handle that goes takes the server with it.
    handle->scalar<ResourceHandle>()() =
        ResourceHandle::MakeRefCountingHandle(new Server(), context->device()->name());
  }
};

// An op on an existing server.
class ServerMethodOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) final {
    tensorflow::core::RefCountPtr<Server> server;
    OP_REQUIRES_OK(context, tensorflow::LookupResource(
                                context, tensorflow::HandleFromInput(context, 0), &server));
    Compute(context, *server);
  }

 protected:
  virtual void Compute(OpKernelContext* context, Server& server) = 0;
};

class ServerBindOp : public ServerMethodOp {
 public:
  explicit ServerBindOp(OpKernelConstruction* context) : ServerMethodOp(context) {
    std::vector<std::string> descriptions;
    std::vector<tensorflow::DataType> dtypes;
    std::vector<tensorflow::PartialTensorShape> shapes;
    int64_t timeout_us;
    OP_REQUIRES_OK(context, context->GetAttr("functions", &functions_));
    OP_REQUIRES_OK(context, context->GetAttr("num_captures", &num_captures_));
    OP_REQUIRES_OK(context, context->GetAttr("method", &spec_.name));
    OP_REQUIRES_OK(context, context->GetAttr("descriptions", &descriptions));
    OP_REQUIRES_OK(context, context->GetAttr("dtypes", &dtypes));
    OP_REQUIRES_OK(context, context->GetAttr("shapes", &shapes));
    OP_REQUIRES_OK(context, context->GetAttr("max_batch_size", &spec_.max_batch_size));
    OP_REQUIRES_OK(context, context->GetAttr("timeout_us", &timeout_us));
    spec_.timeout = std::chrono::microseconds(timeout_us);
    for (size_t i = 0; i < dtypes.size(); ++i) {
      spec_.arguments.push_back({descriptions[i], dtypes[i], shapes[i]});
    }
  }

 protected:
  void Compute(OpKernelContext* context, Server& server) override {
    OpInputList inputs;
    OP_REQUIRES_OK(context, context->input_list("captures", &inputs));
    const std::vector<Tensor> captures(inputs.begin(), inputs.end());
    std::vector<std::unique_ptr<BoundFunction>> functions;
    auto first = captures.begin();
    for (size_t i = 0; i < functions_.size(); ++i) {
      const auto last = first + num_captures_[i];
      auto function =
          BoundFunction::Create(context, functions_[i], std::vector<Tensor>(first, last));
      OP_REQUIRES_OK(context, function.status());
      functions.push_back(*std::move(function));
      first = last;
    }
    OP_REQUIRES_OK(context, server.Bind(spec_, std::move(functions)));
  }

 private:
  std::vector<tensorflow::NameAttrList> functions_;
  std::vector<int32_t> num_captures_;  // Of each function; they follow each other in the input.
  MethodSpec spec_;
};

class ServerStartOp : public ServerMethodOp {
 public:
  explicit ServerStartOp(OpKernelConstruction* context) : ServerMethodOp(context) {
    OP_REQUIRES_OK(context, context->GetAttr("max_request_bytes", &max_request_bytes_));
  }

 protected:
  void Compute(OpKernelContext* context, Server& server) override {
    const auto addresses = context->input(1).vec<tstring>();
    const auto texts = context->input(3).vec<tstring>();
    const TransportSecurity security{texts(0).c_str(), texts(1).c_str(), texts(2).c_str(),
                                     texts(3).c_str()};
    const auto ports = server.Start(
        std::vector<std::string>(addresses.data(), addresses.data() + addresses.size()),
        context->input(2).scalar<tstring>()(), max_request_bytes_, security);
    OP_REQUIRES_OK(context, ports.status());
    Tensor* output;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(1).shape(), &output));
    std::copy(ports->begin(), ports->end(), output->vec<int32_t>().data());
  }

 private:
  int32_t max_request_bytes_;
};

class ServerShutdownOp : public ServerMethodOp {
 public:
  using ServerMethodOp::ServerMethodOp;

 protected:
  void Compute(OpKernelContext* context, Server& server) override {
    server.Shutdown(context->input(1).scalar<bool>()());
  }
};

REGISTER_KERNEL_BUILDER(Name("SeedRlServer").Device(tensorflow::DEVICE_CPU), ServerOp);
REGISTER_KERNEL_BUILDER(Name("SeedRlServerBind").Device(tensorflow::DEVICE_CPU), ServerBindOp);
REGISTER_KERNEL_BUILDER(Name("SeedRlServerStart").Device(tensorflow::DEVICE_CPU), ServerStartOp);
REGISTER_KERNEL_BUILDER(Name("SeedRlServerShutdown").Device(tensorflow::DEVICE_CPU),
                        ServerShutdownOp);

}  // namespace
}  // namespace seed_rl

namespace tensorflow {
// A captured variable on another device must not pull the op there: it has a CPU kernel only.
REGISTER_INPUT_COLOCATION_EXEMPTION("SeedRlServerBind");
}  // namespace tensorflow

// What a method takes, and whether a request brings it.

#ifndef SEED_RL_GRPC_REQUEST_CHECK_H_
#define SEED_RL_GRPC_REQUEST_CHECK_H_

#include <chrono>
#include <string>
#include <vector>

#include "seed_rl/grpc/transport.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "absl/status/statusor.h"

namespace seed_rl {

struct ArgumentSpec {
  std::string description;  // Begins an error: "argument 'reward': expected float32 [?]".
  tensorflow::DataType dtype;
  tensorflow::PartialTensorShape shape;
};

struct MethodSpec {
  std::string name;
  std::vector<ArgumentSpec> arguments;
  // 0: every call runs by itself. Otherwise leading dimensions count rows, and rows are joined.
  int64_t max_batch_size;
  std::chrono::microseconds timeout;  // For how long a row waits for others.

  bool batched() const { return max_batch_size > 0; }
};

// Returns how many rows the request brings (1 if the method is not batched), or an
// InvalidArgumentError that names the argument.
absl::StatusOr<int64_t> CheckRequest(const MethodSpec& spec, const WireRequest& request);

}  // namespace seed_rl

#endif  // SEED_RL_GRPC_REQUEST_CHECK_H_

// One name that clients can call: a batcher, and the functions that run its batches.

#ifndef SEED_RL_GRPC_METHOD_H_
#define SEED_RL_GRPC_METHOD_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "seed_rl/grpc/batcher.h"
#include "seed_rl/grpc/bound_function.h"
#include "seed_rl/grpc/transport.h"
#include "tensorflow/core/framework/cancellation.h"

namespace seed_rl {

// Where a method sends its answers; safe to call from any thread.
struct Answers {
  std::function<void(uint64_t stream, const std::vector<WireTensor>& results)> reply;
  std::function<void(uint64_t stream, const absl::Status& status)> fail;
};

class Method {
 public:
  // Whichever of `functions` is free takes the next batch.
  Method(MethodSpec spec, std::vector<std::unique_ptr<BoundFunction>> functions, Answers answers)
      : batcher_(std::move(spec)),
        answers_(std::move(answers)),
        functions_(std::move(functions)) {}
  ~Method() { Stop(); }

  // One thread for each function, since one function runs one batch at a time.
  void Start();
  // Ends what waits and what runs. Blocks until no function runs any more.
  void Stop();

  Batcher& batcher() { return batcher_; }

 private:
  void Serve(BoundFunction& function);
  absl::Status CheckResults(const Batch& batch,
                            const std::vector<tensorflow::Tensor>& results) const;
  void Reply(const Batch& batch, const std::vector<tensorflow::Tensor>& results);

  Batcher batcher_;
  const Answers answers_;
  tensorflow::CancellationManager cancellation_;
  const std::vector<std::unique_ptr<BoundFunction>> functions_;
  std::vector<std::thread> threads_;
};

}  // namespace seed_rl

#endif  // SEED_RL_GRPC_METHOD_H_

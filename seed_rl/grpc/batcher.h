// Joins the rows of many calls into batches.

#ifndef SEED_RL_GRPC_BATCHER_H_
#define SEED_RL_GRPC_BATCHER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "seed_rl/grpc/request_check.h"
#include "seed_rl/grpc/transport.h"
#include "tensorflow/core/framework/tensor.h"

namespace seed_rl {

using Clock = std::chrono::steady_clock;

// One request in a batch. It owns the rows from first_row on.
struct Call {
  uint64_t stream;
  int64_t first_row;
  int64_t rows;
};

struct Batch {
  std::vector<tensorflow::Tensor> arguments;
  std::vector<Call> calls;
  int64_t rows = 0;
  size_t calls_copied = 0;  // How many of `calls` have all of their rows in `arguments`.
  size_t callers = 0;       // How many of `calls` still have somebody waiting for the answer.
  bool closed = false;      // No call may join any more.
  Clock::time_point deadline;
};

// Thread-safe. Calls are added by the threads of gRPC and taken by those that run the functions.
//
// A batch goes out when it is full, when its oldest row has waited spec.timeout, or when nobody is
// left who could still join: every client that calls this method waits for an answer already. So
// in lockstep nobody waits for a clock, and a client that is slow costs one timeout per batch.
//
// A batch that waits for its turn is dropped when the last of its callers is gone.
class Batcher {
 public:
  explicit Batcher(MethodSpec spec) : spec_(std::move(spec)) {}

  const MethodSpec& spec() const { return spec_; }

  // Copies the request into a batch. InvalidArgumentError: the request is not as specified.
  // ResourceExhaustedError: no memory for a new batch. CancelledError: stopped.
  absl::Status Add(const WireRequest& request);
  // The stream does not call this method any more.
  void Leave(uint64_t stream);

  // Blocks until a batch is due. Returns null once stopped.
  std::shared_ptr<Batch> Next();
  // The calls of a batch from Next() are about to be answered; their clients may call again.
  void Done(const Batch& batch);

  // Returns the streams whose calls will not run.
  std::vector<uint64_t> Stop();

 private:
  struct Member {
    int64_t rows;                  // As many as it brought last time.
    std::shared_ptr<Batch> batch;  // That it waits for; null if for none.
  };

  // The functions below expect `mutex_` to be held.
  // Returns the batch that the rows join; null: no memory for a new one.
  std::shared_ptr<Batch> OpenBatch(int64_t rows, const WireRequest& request);
  bool IsDue(const Batch& batch) const;
  void MarkWaiting(uint64_t stream, int64_t rows, std::shared_ptr<Batch> batch);
  void Drop(const std::shared_ptr<Batch>& batch);
  void NotifyIfDue();

  const MethodSpec spec_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Batch>> queue_;  // Oldest first; all but the last are closed.
  std::unordered_map<uint64_t, Member> members_;
  int64_t idle_rows_ = 0;  // Of the members that wait for no answer: rows that could still join.
  bool stopped_ = false;
};

}  // namespace seed_rl

#endif  // SEED_RL_GRPC_BATCHER_H_

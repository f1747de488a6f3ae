#include "seed_rl/grpc/batcher.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace seed_rl {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

// Room for `max_batch_size` rows; untouched pages of a batch that goes out early cost nothing.
// Returns nothing if there is no memory.
std::optional<std::vector<Tensor>> Allocate(const MethodSpec& spec, const WireRequest& request) {
  std::vector<Tensor> arguments;
  arguments.reserve(spec.arguments.size());
  for (int32_t i = 0; i < request.num_arguments; ++i) {
    const WireTensor& tensor = request.arguments[i];
    TensorShape shape(absl::MakeSpan(tensor.shape, tensor.rank));
    if (spec.batched() && !shape.SetDimWithStatus(0, spec.max_batch_size).ok()) return {};
    arguments.emplace_back(spec.arguments[i].dtype, shape);
    if (!arguments.back().IsInitialized()) return {};
  }
  return arguments;
}

void CopyRows(const WireRequest& request, const Call& call, std::vector<Tensor>& arguments) {
  for (int32_t i = 0; i < request.num_arguments; ++i) {
    const WireTensor& tensor = request.arguments[i];
    if (tensor.size == 0) continue;
    const uint64_t offset = tensor.size / call.rows * call.first_row;
    std::memcpy(static_cast<char*>(arguments[i].data()) + offset, tensor.data, tensor.size);
  }
}

void TrimToRows(Batch& batch) {
  for (Tensor& tensor : batch.arguments) tensor = tensor.Slice(0, batch.rows);
}

}  // namespace

absl::Status Batcher::Add(const WireRequest& request) {
  absl::StatusOr<int64_t> rows = CheckRequest(spec_, request);
  if (!rows.ok()) return rows.status();
  std::shared_ptr<Batch> batch;
  Call call{request.stream, 0, *rows};
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return absl::CancelledError();
    batch = OpenBatch(*rows, request);
    if (batch == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("method '", spec_.name, "': the server has no memory for a batch"));
    }
    call.first_row = batch->rows;
    batch->calls.push_back(call);
    ++batch->callers;
    batch->rows += *rows;
    batch->closed = batch->rows >= spec_.max_batch_size;
    MarkWaiting(request.stream, *rows, batch);
  }
  // Without the lock, so that many threads copy at once. The batch is not due before it is whole.
  CopyRows(request, call, batch->arguments);
  std::lock_guard<std::mutex> lock(mutex_);
  ++batch->calls_copied;
  NotifyIfDue();
  return absl::OkStatus();
}

std::shared_ptr<Batch> Batcher::OpenBatch(int64_t rows, const WireRequest& request) {
  if (!queue_.empty() && !queue_.back()->closed) {
    const std::shared_ptr<Batch>& last = queue_.back();
    if (last->rows + rows <= spec_.max_batch_size) return last;
    last->closed = true;
    NotifyIfDue();
  }
  auto arguments = Allocate(spec_, request);
  if (!arguments) return nullptr;
  auto batch = std::make_shared<Batch>();
  batch->arguments = *std::move(arguments);
  batch->deadline = Clock::now() + spec_.timeout;
  queue_.push_back(batch);
  changed_.notify_one();  // Somebody has to mind the new deadline.
  return batch;
}

void Batcher::MarkWaiting(uint64_t stream, int64_t rows, std::shared_ptr<Batch> batch) {
  auto it = members_.find(stream);
  if (it != members_.end()) idle_rows_ -= it->second.rows;  // It was idle: it calls again.
  members_[stream] = {rows, std::move(batch)};
}

void Batcher::Leave(uint64_t stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = members_.find(stream);
  if (it == members_.end()) return;
  const Member member = std::move(it->second);
  members_.erase(it);
  if (member.batch == nullptr) {
    idle_rows_ -= member.rows;
  } else if (--member.batch->callers == 0) {
    Drop(member.batch);
  }
  NotifyIfDue();
}

void Batcher::Drop(const std::shared_ptr<Batch>& batch) {
  auto it = std::find(queue_.begin(), queue_.end(), batch);
  if (it != queue_.end()) queue_.erase(it);  // Otherwise it runs already.
}

bool Batcher::IsDue(const Batch& batch) const {
  const bool whole = batch.calls_copied == batch.calls.size();
  return whole && (batch.closed || idle_rows_ == 0 || Clock::now() >= batch.deadline);
}

void Batcher::NotifyIfDue() {
  if (!queue_.empty() && IsDue(*queue_.front())) changed_.notify_one();
}

std::shared_ptr<Batch> Batcher::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    if (queue_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const std::shared_ptr<Batch> front = queue_.front();
    if (IsDue(*front)) {
      queue_.pop_front();
      front->closed = true;
      if (!queue_.empty()) changed_.notify_one();  // The next one has a deadline, too.
      lock.unlock();
      if (spec_.batched()) TrimToRows(*front);
      return front;
    }
    if (Clock::now() < front->deadline) {
      changed_.wait_until(lock, front->deadline);
    } else {
      changed_.wait(lock);  // For the last copy.
    }
  }
  return nullptr;
}

void Batcher::Done(const Batch& batch) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Call& call : batch.calls) {
    auto it = members_.find(call.stream);
    if (it == members_.end()) continue;
    it->second.batch = nullptr;
    idle_rows_ += it->second.rows;
  }
}

std::vector<uint64_t> Batcher::Stop() {
  std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  std::vector<uint64_t> streams;
  for (const auto& batch : queue_) {
    for (const Call& call : batch->calls) streams.push_back(call.stream);
  }
  queue_.clear();
  changed_.notify_all();
  return streams;
}

}  // namespace seed_rl

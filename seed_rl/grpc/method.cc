#include "seed_rl/grpc/method.h"

#include <pthread.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace seed_rl {

using tensorflow::Tensor;

void Method::Start() {
  // For `top -H` and profilers; the kernel takes up to 15 characters.
  const std::string name = absl::StrCat("serve ", batcher_.spec().name).substr(0, 15);
  for (auto& function : functions_) {
    threads_.emplace_back([this, &function] { Serve(*function); });
    pthread_setname_np(threads_.back().native_handle(), name.c_str());
  }
}

void Method::Stop() {
  for (uint64_t stream : batcher_.Stop()) answers_.fail(stream, absl::CancelledError());
  cancellation_.StartCancel();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Method::Serve(BoundFunction& function) {
  while (std::shared_ptr<Batch> batch = batcher_.Next()) {
    std::vector<Tensor> results;
    absl::Status status = function.Run(batch->arguments, &cancellation_, &results);
    if (status.ok()) status = CheckResults(*batch, results);
    // Before the answers: a client may call again before the last of them is out.
    batcher_.Done(*batch);
    if (status.ok()) {
      Reply(*batch, results);
    } else {
      const absl::Status error = absl::InternalError(status.message());
      for (const Call& call : batch->calls) answers_.fail(call.stream, error);
    }
  }
}

absl::Status Method::CheckResults(const Batch& batch, const std::vector<Tensor>& results) const {
  if (!batcher_.spec().batched()) return absl::OkStatus();
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].dims() == 0 || results[i].dim_size(0) != batch.rows) {
      return absl::InternalError(absl::StrCat(
          "method '", batcher_.spec().name, "': result ", i, " has shape ",
          results[i].shape().DebugString(), " for a batch of ", batch.rows, " rows"));
    }
  }
  return absl::OkStatus();
}

void Method::Reply(const Batch& batch, const std::vector<Tensor>& results) {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<WireTensor> views;
  for (const Tensor& result : results) {
    const auto dims = result.shape().dim_sizes();
    shapes.emplace_back(dims.begin(), dims.end());
    views.push_back({result.dtype(), result.dims(), shapes.back().data(), nullptr, 0});
  }
  for (const Call& call : batch.calls) {
    for (size_t i = 0; i < results.size(); ++i) {
      const uint64_t row_bytes = results[i].TotalBytes() / batch.rows;
      if (batcher_.spec().batched()) shapes[i][0] = call.rows;
      views[i].data = static_cast<const char*>(results[i].data()) + call.first_row * row_bytes;
      views[i].size = call.rows * row_bytes;
    }
    answers_.reply(call.stream, views);
  }
}

}  // namespace seed_rl

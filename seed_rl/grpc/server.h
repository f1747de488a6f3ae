// The server: methods behind a transport.

#ifndef SEED_RL_GRPC_SERVER_H_
#define SEED_RL_GRPC_SERVER_H_

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "seed_rl/grpc/method.h"
#include "seed_rl/grpc/transport.h"
#include "tensorflow/core/framework/resource_base.h"

namespace seed_rl {

class Server : public tensorflow::ResourceBase {
 public:
  ~Server() override { Shutdown(/*final=*/false); }

  // Only before Start(), and once for each name.
  absl::Status Bind(MethodSpec spec, std::vector<std::unique_ptr<BoundFunction>> functions);
  // Returns the port of each address. `description` is a serialized Description. May be tried again
  // after an UnavailableError: an address cannot be bound.
  absl::StatusOr<std::vector<int32_t>> Start(const std::vector<std::string>& addresses,
                                             const std::string& description,
                                             int32_t max_request_bytes,
                                             const TransportSecurity& security);
  // Ends every call and every stream: cleanly if `final`, else as unavailable. Later calls do
  // nothing, and don't wait for the first.
  void Shutdown(bool final);

  std::string DebugString() const override { return "seed_rl::Server"; }

 private:
  static void OnRequest(void* server, const WireRequest* request);
  static void OnClose(void* server, uint64_t stream);
  void Reply(uint64_t stream, const std::vector<WireTensor>& results);
  void Fail(uint64_t stream, const absl::Status& status);
  absl::Status Dispatch(const WireRequest& request);
  // Notes that the stream's calls go to `method` (null: to none), and no longer to another.
  void MoveStream(uint64_t stream, Method* method);

  const TransportApi* api_ = nullptr;
  Transport* transport_ = nullptr;
  std::unordered_map<std::string, std::unique_ptr<Method>> methods_;

  std::mutex mutex_;
  std::unordered_map<uint64_t, Method*> stream_methods_;  // The method each stream called last.
  bool stopping_ = false;
  absl::Status stop_status_;  // What every call gets from then on.
};

}  // namespace seed_rl

#endif  // SEED_RL_GRPC_SERVER_H_

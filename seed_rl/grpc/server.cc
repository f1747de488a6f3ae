#include "seed_rl/grpc/server.h"

#include <dlfcn.h>

#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace seed_rl {
namespace {

// ops.py has loaded it.
absl::StatusOr<const TransportApi*> FindTransport() {
  void* library = dlopen("libseed_rl_transport.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return absl::NotFoundError("the transport is not loaded");
  auto api = reinterpret_cast<const TransportApi* (*)()>(dlsym(library, "SeedRlTransportApi"));
  if (api == nullptr) return absl::NotFoundError("libseed_rl_transport.so has no entry point");
  return api();
}

}  // namespace

absl::Status Server::Bind(MethodSpec spec,
                          std::vector<std::unique_ptr<BoundFunction>> functions) {
  if (transport_ != nullptr) {
    return absl::FailedPreconditionError("bind() must be called before start()");
  }
  Answers answers{
      [this](uint64_t stream, const std::vector<WireTensor>& results) { Reply(stream, results); },
      [this](uint64_t stream, const absl::Status& status) { Fail(stream, status); }};
  const std::string name = spec.name;
  methods_[name] =
      std::make_unique<Method>(std::move(spec), std::move(functions), std::move(answers));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> Server::Start(const std::vector<std::string>& addresses,
                                                   const std::string& description,
                                                   int32_t max_request_bytes,
                                                   const TransportSecurity& security) {
  absl::StatusOr<const TransportApi*> api = FindTransport();
  if (!api.ok()) return api.status();
  api_ = *api;
  std::vector<const char*> names;
  for (const std::string& address : addresses) names.push_back(address.c_str());
  std::vector<int32_t> ports(addresses.size(), 0);
  std::array<char, 512> error{};
  transport_ = api_->create({this, &Server::OnRequest, &Server::OnClose});
  const bool started =
      api_->start(transport_, names.data(), names.size(), description.data(), description.size(),
                  max_request_bytes, &security, ports.data(), error.data(), error.size());
  if (!started) {
    api_->stop(std::exchange(transport_, nullptr), 0, "");
    return absl::UnavailableError(error.data());
  }
  for (auto& [name, method] : methods_) method->Start();
  return ports;
}

void Server::Shutdown(bool final) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    stop_status_ = final ? absl::OkStatus() : absl::UnavailableError("the server shuts down");
  }
  for (auto& [name, method] : methods_) method->Stop();
  if (transport_ == nullptr) return;
  api_->stop(transport_, stop_status_.raw_code(), std::string(stop_status_.message()).c_str());
}

void Server::OnRequest(void* server, const WireRequest* request) {
  auto* self = static_cast<Server*>(server);
  const absl::Status status = self->Dispatch(*request);
  if (!status.ok()) self->Fail(request->stream, status);
}

void Server::OnClose(void* server, uint64_t stream) {
  static_cast<Server*>(server)->MoveStream(stream, nullptr);
}

absl::Status Server::Dispatch(const WireRequest& request) {
  const std::string name(request.method, request.method_size);
  auto it = methods_.find(name);
  if (it == methods_.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no method '", absl::Utf8SafeCEscape(name), "'"));
  }
  MoveStream(request.stream, it->second.get());
  return it->second->batcher().Add(request);
}

void Server::MoveStream(uint64_t stream, Method* method) {
  Method* previous;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = stream_methods_.try_emplace(stream, nullptr).first;
    previous = std::exchange(it->second, method);
    if (method == nullptr) stream_methods_.erase(it);
  }
  if (previous != nullptr && previous != method) previous->batcher().Leave(stream);
}

void Server::Reply(uint64_t stream, const std::vector<WireTensor>& results) {
  api_->reply(transport_, stream, results.data(), results.size());
}

void Server::Fail(uint64_t stream, const absl::Status& status) {
  absl::Status final_status = status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) final_status = stop_status_;
  }
  api_->fail(transport_, stream, final_status.raw_code(),
             std::string(final_status.message()).c_str());
}

}  // namespace seed_rl

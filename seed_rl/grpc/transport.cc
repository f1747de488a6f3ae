#include "seed_rl/grpc/transport.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "seed_rl/grpc/service.grpc.pb.h"

namespace {

using grpc::ByteBuffer;
using grpc::Status;
using grpc::StatusCode;

constexpr int kMaxReplyBytes = 512 << 20;
constexpr int kKeepaliveMs = 20'000;
// gRPC refuses trailing metadata over 8 KB, and escapes may triple a message.
constexpr size_t kMaxErrorBytes = 2'000;
constexpr auto kGracePeriod = std::chrono::seconds(5);

// Cuts a UTF-8 text, but never a character in two: the client could not read any of it.
std::string Shorten(const std::string& text) {
  if (text.size() <= kMaxErrorBytes) return text;
  const auto continues_character = [&](size_t i) { return (text[i] & 0xC0) == 0x80; };
  size_t end = kMaxErrorBytes;
  while (end > 0 && continues_character(end)) --end;
  return text.substr(0, end);
}

Status MakeStatus(int32_t code, const char* message) {
  if (code == 0) return Status::OK;
  return Status(static_cast<StatusCode>(code), Shorten(message));
}

std::shared_ptr<grpc::ServerCredentials> MakeCredentials(const TransportSecurity& security) {
  const std::string certificate = security.certificate, ca = security.ca;
  if (certificate.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                 : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_key_cert_pairs.push_back({security.key, certificate});
  options.pem_root_certs = ca;
  return grpc::SslServerCredentials(options);
}

// In a time that does not tell where they differ.
bool SecretsAreEqual(grpc::string_ref one, grpc::string_ref other) {
  if (one.size() != other.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < one.size(); ++i) difference |= one.data()[i] ^ other.data()[i];
  return difference == 0;
}

// One client's stream of calls: read, hand up, write, read, ...
//
// gRPC allows one write at a time and nothing after Finish(), while the end can come at any time
// from any thread: an error, a shutdown, a client that is gone.
class Stream : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  Stream(Transport* transport, uint64_t id) : transport_(transport), id_(id) {}

  void Read() { StartRead(&request_bytes_); }
  void Reply(const WireTensor* results, int32_t num_results);
  void End(const Status& status);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { End(Status::CANCELLED); }
  void OnDone() override;

 private:
  void HandUp(const seed_rl::CallRequest& request);

  Transport* const transport_;
  const uint64_t id_;
  ByteBuffer request_bytes_, reply_bytes_;  // Empty while the stream is quiet.

  std::mutex mutex_;
  bool writing_ = false;
  bool ended_ = false;
  Status end_;
};

using Service = seed_rl::Functions::WithRawCallbackMethod_Call<
    seed_rl::Functions::WithCallbackMethod_Describe<seed_rl::Functions::Service>>;

}  // namespace

struct Transport : Service {
 public:
  explicit Transport(TransportHandler handler) : handler_(handler) {}

  // Returns what went wrong, or an empty string.
  std::string Start(const std::vector<std::string>& addresses, const std::string& description,
                    int32_t max_request_bytes, const TransportSecurity& security, int32_t* ports);
  void Stop(const Status& status);
  std::shared_ptr<Stream> Find(uint64_t id);
  void Remove(uint64_t id);
  const TransportHandler& handler() const { return handler_; }

  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* Call(grpc::CallbackServerContext*) override;
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const seed_rl::DescribeRequest*,
                                     seed_rl::Description* reply) override;

 private:
  // OK if the call has the token, where one is asked for.
  Status Authenticate(const grpc::CallbackServerContext& context) const;

  const TransportHandler handler_;
  seed_rl::Description description_;
  std::string authorization_;  // What calls must have as metadata of this name; empty: nothing.
  std::unique_ptr<grpc::Server> server_;

  std::mutex mutex_;
  std::condition_variable stream_removed_;
  std::unordered_map<uint64_t, std::shared_ptr<Stream>> streams_;
  uint64_t next_id_ = 1;
  bool stopping_ = false;
  Status stop_status_;
};

namespace {

void Stream::OnReadDone(bool ok) {
  if (!ok) return End(Status::OK);  // The client has closed its side.
  // Not a typed method: gRPC would end a stream of unreadable bytes as if it had been closed.
  seed_rl::CallRequest request;
  if (!grpc::SerializationTraits<seed_rl::CallRequest>::Deserialize(&request_bytes_, &request)
           .ok()) {
    return End(Status(StatusCode::INVALID_ARGUMENT, "the message is not a CallRequest"));
  }
  HandUp(request);
}

void Stream::HandUp(const seed_rl::CallRequest& request) {
  std::vector<WireTensor> arguments;
  arguments.reserve(request.arguments_size());
  for (const seed_rl::Tensor& tensor : request.arguments()) {
    arguments.push_back({tensor.dtype(), tensor.shape_size(), tensor.shape().data(),
                         tensor.data().data(), tensor.data().size()});
  }
  const WireRequest view{id_, request.method().data(), request.method().size(), arguments.data(),
                         static_cast<int32_t>(arguments.size())};
  transport_->handler().on_request(transport_->handler().context, &view);
}

void Stream::Reply(const WireTensor* results, int32_t num_results) {
  seed_rl::CallReply reply;
  for (int32_t i = 0; i < num_results; ++i) {
    const WireTensor& result = results[i];
    seed_rl::Tensor* tensor = reply.add_results();
    tensor->set_dtype(static_cast<seed_rl::DataType>(result.dtype));
    tensor->mutable_shape()->Add(result.shape, result.shape + result.rank);
    tensor->set_data(result.data, result.size);
  }
  if (reply.ByteSizeLong() > kMaxReplyBytes) {
    return End(Status(StatusCode::RESOURCE_EXHAUSTED, "the results are larger than 512 MB"));
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) return;
    writing_ = true;
  }
  bool own_buffer;
  grpc::SerializationTraits<seed_rl::CallReply>::Serialize(reply, &reply_bytes_, &own_buffer);
  StartWrite(&reply_bytes_);
}

void Stream::OnWriteDone(bool) {
  reply_bytes_.Clear();
  bool finish;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    writing_ = false;
    finish = ended_;
  }
  if (finish) {
    Finish(end_);
  } else {
    Read();
  }
}

void Stream::End(const Status& status) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) return;
    ended_ = true;
    end_ = status;
    if (writing_) return;  // OnWriteDone finishes.
  }
  Finish(status);
}

void Stream::OnDone() { transport_->Remove(id_); }

}  // namespace

std::string Transport::Start(const std::vector<std::string>& addresses,
                             const std::string& description, int32_t max_request_bytes,
                             const TransportSecurity& security, int32_t* ports) {
  if (!description_.ParseFromString(description)) return "the description cannot be read";
  if (*security.token != '\0') authorization_ = std::string("Bearer ") + security.token;
  const std::shared_ptr<grpc::ServerCredentials> credentials = MakeCredentials(security);
  grpc::ServerBuilder builder;
  builder.RegisterService(this);
  builder.SetMaxReceiveMessageSize(max_request_bytes);
  builder.SetMaxSendMessageSize(kMaxReplyBytes);
  // Two learners on one port would share the actors between them without a word.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A host that loses power closes nothing; its rows must not be waited for.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  for (size_t i = 0; i < addresses.size(); ++i) {
    builder.AddListeningPort(addresses[i], credentials, &ports[i]);
  }
  server_ = builder.BuildAndStart();
  if (server_) return "";
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (ports[i] <= 0) return "address " + addresses[i] + " is in use or cannot be bound";
  }
  return "the gRPC server cannot be started";
}

void Transport::Stop(const Status& status) {
  std::vector<std::shared_ptr<Stream>> open;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    stop_status_ = status;
    for (const auto& [id, stream] : streams_) open.push_back(stream);
  }
  for (const auto& stream : open) stream->End(status);
  open.clear();
  if (server_) server_->Shutdown(std::chrono::system_clock::now() + kGracePeriod);
  std::unique_lock<std::mutex> lock(mutex_);
  stream_removed_.wait(lock, [this] { return streams_.empty(); });
}

std::shared_ptr<Stream> Transport::Find(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = streams_.find(id);
  return it == streams_.end() ? nullptr : it->second;
}

void Transport::Remove(uint64_t id) {
  handler_.on_close(handler_.context, id);
  std::lock_guard<std::mutex> lock(mutex_);
  streams_.erase(id);
  // Under the lock: Stop() frees this object as soon as it sees the last stream gone.
  stream_removed_.notify_all();
}

Status Transport::Authenticate(const grpc::CallbackServerContext& context) const {
  if (authorization_.empty()) return Status::OK;
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) {
    return Status(StatusCode::UNAUTHENTICATED, "expected a token, got none");
  }
  if (!SecretsAreEqual(found->second, authorization_)) {
    return Status(StatusCode::UNAUTHENTICATED, "expected another token");
  }
  return Status::OK;
}

grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* Transport::Call(
    grpc::CallbackServerContext* context) {
  const Status authentic = Authenticate(*context);
  std::shared_ptr<Stream> stream;
  bool stopping;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t id = next_id_++;
    stream = std::make_shared<Stream>(this, id);
    streams_.emplace(id, stream);
    stopping = stopping_;
  }
  if (!authentic.ok()) {
    stream->End(authentic);
  } else if (stopping) {
    stream->End(stop_status_);
  } else {
    stream->Read();
  }
  return stream.get();
}

grpc::ServerUnaryReactor* Transport::Describe(grpc::CallbackServerContext* context,
                                              const seed_rl::DescribeRequest*,
                                              seed_rl::Description* reply) {
  const Status authentic = Authenticate(*context);
  if (authentic.ok()) *reply = description_;
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(authentic);
  return reactor;
}

namespace {

Transport* CreateTransport(TransportHandler handler) {
  // For as long as the process lives: with the last server gRPC would otherwise shut down all of
  // itself, and then sometimes waits ten seconds for a timer of its own.
  static const bool kept = (grpc_init(), true);
  (void)kept;
  return new Transport(handler);
}

bool StartTransport(Transport* transport, const char* const* addresses, int32_t num_addresses,
                    const void* description, uint64_t description_size,
                    int32_t max_request_bytes, const TransportSecurity* security, int32_t* ports,
                    char* error, uint64_t error_size) {
  const std::string problem = transport->Start(
      std::vector<std::string>(addresses, addresses + num_addresses),
      std::string(static_cast<const char*>(description), description_size), max_request_bytes,
      *security, ports);
  std::snprintf(error, error_size, "%s", problem.c_str());
  return problem.empty();
}

void Reply(Transport* transport, uint64_t id, const WireTensor* results, int32_t num_results) {
  if (auto stream = transport->Find(id)) stream->Reply(results, num_results);
}

void Fail(Transport* transport, uint64_t id, int32_t code, const char* message) {
  if (auto stream = transport->Find(id)) stream->End(MakeStatus(code, message));
}

void StopTransport(Transport* transport, int32_t code, const char* message) {
  transport->Stop(MakeStatus(code, message));
  delete transport;
}

}  // namespace

const TransportApi* SeedRlTransportApi() {
  static const TransportApi api{CreateTransport, StartTransport, Reply, Fail, StopTransport};
  return &api;
}

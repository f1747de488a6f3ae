// Calls a server from many clients at once, at little cost: the requests are made beforehand, and
// the replies are compared as bytes and not parsed. load.py says how it is built and talked to.

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using grpc::ByteBuffer;
using Clock = std::chrono::steady_clock;

constexpr char kMethod[] = "/seed_rl.Functions/Call";
constexpr auto kPatience = std::chrono::seconds(60);

struct Answer {
  Clock::time_point end;
  Clock::duration latency;
};

class Client;

// Lets clients call when their environments have stepped.
class Timer {
 public:
  Timer() : thread_([this] { Run(); }) {}
  void At(Clock::time_point time, Client* client);
  // No client calls any more once this has returned.
  void Stop();

 private:
  void Run();

  using Entry = std::pair<Clock::time_point, Client*>;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> entries_;
  bool stopped_ = false;
  std::thread thread_;
};

// One connection with one stream: calls, waits for the reply, steps for a while, calls again.
class Client : public grpc::ClientBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  Client(const std::string& address, const std::string& request, Clock::duration step, Timer* timer)
      : step_(step), timer_(timer) {
    grpc::Slice slice(request);
    request_ = ByteBuffer(&slice, 1);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // A connection of its own.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }

  bool Connect() {
    return channel_->WaitForConnected(std::chrono::system_clock::now() + kPatience);
  }

  void Start() {
    grpc::GenericStub stub(channel_);
    stub.PrepareBidiStreamingCall(&context_, kMethod, {}, this);
    AddHold();  // The timer's: keeps the stream while nothing is under way.
    StartCall();
    Call();
  }

  void Call() {
    start_ = Clock::now();
    StartRead(&reply_);
    StartWrite(&request_);
  }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  // Ends the stream, after Timer::Stop().
  void Stop() {
    stopping_ = true;
    context_.TryCancel();
    ReleaseHold();
  }

  // Returns whether there was a first reply in time.
  bool WaitForReply() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, kPatience, [this] { return answered_ || done_; });
    return answered_;
  }

  // Returns whether the stream lived until Stop().
  bool Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
    return !failed_;
  }

  // To be read after Wait().
  const std::vector<Answer>& answers() const { return answers_; }
  const std::string& first_reply() const { return first_reply_; }
  int64_t changed_replies() const { return changed_replies_; }

 private:
  void Record();
  void ReleaseHold() {
    if (!hold_released_.exchange(true)) RemoveHold();
  }
  // Goes on when both the write and the read are done: they end in any order.
  void Advance();

  const Clock::duration step_;
  Timer* const timer_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  ByteBuffer request_, reply_;
  Clock::time_point start_;
  std::vector<Answer> answers_;
  std::string first_reply_;
  int64_t changed_replies_ = 0;
  std::atomic<int> operations_done_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> hold_released_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool answered_ = false;
  bool done_ = false;
  bool failed_ = false;
};

void Timer::At(Clock::time_point time, Client* client) {
  std::lock_guard<std::mutex> lock(mutex_);
  entries_.emplace(time, client);
  if (entries_.top().second == client) changed_.notify_one();
}

void Timer::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    if (entries_.empty()) {
      changed_.wait(lock);
    } else if (const auto [time, client] = entries_.top(); time <= Clock::now()) {
      entries_.pop();
      lock.unlock();
      client->Call();
      lock.lock();
    } else {
      changed_.wait_until(lock, time);
    }
  }
}

void Timer::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void Client::OnReadDone(bool ok) {
  if (!ok) return ReleaseHold();  // OnDone comes next and says why.
  Record();
  Advance();
}

void Client::OnWriteDone(bool ok) {
  if (ok) Advance();
}

void Client::Advance() {
  if (++operations_done_ < 2 || stopping_) return;
  operations_done_ = 0;
  if (step_ == Clock::duration::zero()) {
    Call();
  } else {
    timer_->At(answers_.back().end + step_, this);
  }
}

void Client::Record() {
  const auto now = Clock::now();
  answers_.push_back({now, now - start_});
  grpc::Slice slice;
  if (!reply_.TrySingleSlice(&slice).ok()) reply_.DumpToSingleSlice(&slice);
  const std::string reply(reinterpret_cast<const char*>(slice.begin()), slice.size());
  if (answers_.size() == 1) {
    first_reply_ = reply;
    std::lock_guard<std::mutex> lock(mutex_);
    answered_ = true;
    changed_.notify_all();
  }
  if (reply != first_reply_) ++changed_replies_;
  reply_.Clear();
}

void Client::OnDone(const grpc::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  failed_ = !stopping_;
  if (failed_) std::cerr << "a stream ended: " << status.error_message() << std::endl;
  done_ = true;
  changed_.notify_all();
}

// Each is preceded by its size, 4 bytes in the machine's order.
std::vector<std::string> ReadRequests(uint32_t count) {
  std::vector<std::string> requests;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t size;
    std::cin.read(reinterpret_cast<char*>(&size), sizeof(size));
    requests.emplace_back(std::cin ? size : 0, '\0');
    std::cin.read(requests.back().data(), requests.back().size());
  }
  return requests;
}

void PrintHex(const std::string& bytes) {
  for (unsigned char byte : bytes) std::printf("%02x", byte);
}

// One line for each client: its first reply, the number of all replies, how many of them differed
// from the first, and the latencies in nanoseconds of the calls that ended between `begin` and `end`.
void Print(const Client& client, Clock::time_point begin, Clock::time_point end) {
  PrintHex(client.first_reply());
  std::printf(" %zu %ld", client.answers().size(), static_cast<long>(client.changed_replies()));
  for (const Answer& answer : client.answers()) {
    if (answer.end < begin || answer.end >= end) continue;
    std::printf(" %ld", static_cast<long>(std::chrono::nanoseconds(answer.latency).count()));
  }
  std::printf("\n");
}

int Main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "expected: load_client ADDRESS CLIENTS STEP_US WARM_UP_US MEASURE_US" << std::endl;
    return 2;
  }
  const auto microseconds = [&](int i) { return std::chrono::microseconds(std::atoll(argv[i])); };
  const std::vector<std::string> requests = ReadRequests(std::atoi(argv[2]));
  Timer timer;
  std::vector<std::unique_ptr<Client>> clients;
  for (const std::string& request : requests) {
    clients.push_back(
        std::make_unique<Client>(argv[1], request, microseconds(3), &timer));
    if (!clients.back()->Connect()) {
      std::cerr << "no server answered at " << argv[1] << std::endl;
      std::_Exit(1);  // Without waiting for threads
    }
  }
  std::printf("connected\n");
  std::fflush(stdout);
  std::cin.ignore(1);  // The word to start.

  for (const auto& client : clients) client->Start();
  for (const auto& client : clients) {
    if (client->WaitForReply()) continue;
    std::cerr << "a client got no reply" << std::endl;
    std::_Exit(1);
  }
  std::this_thread::sleep_for(microseconds(4));
  std::printf("measuring\n");
  std::fflush(stdout);
  const auto begin = Clock::now();
  std::this_thread::sleep_for(microseconds(5));
  const auto end = Clock::now();
  std::printf("measured %ld\n", static_cast<long>(std::chrono::nanoseconds(end - begin).count()));
  std::fflush(stdout);

  timer.Stop();
  for (const auto& client : clients) client->Stop();
  bool ok = true;
  for (const auto& client : clients) ok &= client->Wait();
  for (const auto& client : clients) Print(*client, begin, end);
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return Main(argc, argv); }

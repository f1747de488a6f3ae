// The line between TensorFlow and gRPC.
//
// TensorFlow and Debian's gRPC carry different versions of the same libraries (abseil, protobuf,
// BoringSSL) under the same symbol names, so they live in two shared objects. This header is all
// that they share: plain C types, and memory that never changes hands. Whatever a pointer in here
// points to belongs to the side that passes it and is valid until the call returns.

#ifndef SEED_RL_GRPC_TRANSPORT_H_
#define SEED_RL_GRPC_TRANSPORT_H_

#include <stdint.h>

extern "C" {

struct WireTensor {
  int32_t dtype;  // A DataType of service.proto, which is a tensorflow::DataType.
  int32_t rank;
  const int64_t* shape;
  const void* data;  // Row-major.
  uint64_t size;     // Bytes of data.
};

struct WireRequest {
  uint64_t stream;  // Never used twice. One stream is one client.
  const char* method;  // UTF-8; may hold NUL.
  uint64_t method_size;
  const WireTensor* arguments;
  int32_t num_arguments;
};

// What the transport reports. Threads of gRPC call in here, so neither function may block.
struct TransportHandler {
  void* context;
  // To be answered once, by reply() or fail(), at any time and from any thread. The stream stays
  // quiet until then. Nothing in `request` is checked yet.
  void (*on_request)(void* context, const WireRequest* request);
  // The last word about a stream, also about one that is still owed an answer.
  void (*on_close)(void* context, uint64_t stream);
};

// Who may connect, and how. Empty strings where that is not asked for.
struct TransportSecurity {
  const char* certificate;  // PEM: the server's chain. None: connections are not encrypted.
  const char* key;          // PEM: the certificate's.
  const char* ca;           // PEM: who must have signed the clients' certificates.
  const char* token;        // Every call must bring it along: "authorization: Bearer <token>".
};

struct Transport;

struct TransportApi {
  Transport* (*create)(TransportHandler handler);
  // Listens on `addresses` ("unix:/path" or "host:port") and answers Describe with `description`,
  // a serialized Description. A larger request than `max_request_bytes` ends its stream before it is
  // parsed. Writes the real port of each address into `ports` (unix sockets: 1).
  // Returns false after writing a message of at most `error_size` bytes into `error`.
  bool (*start)(Transport* transport, const char* const* addresses, int32_t num_addresses,
                const void* description, uint64_t description_size, int32_t max_request_bytes,
                const TransportSecurity* security, int32_t* ports, char* error,
                uint64_t error_size);
  // Both do nothing when the stream has ended in the meantime. `code` is a gRPC status code;
  // 0 ends the stream cleanly.
  void (*reply)(Transport* transport, uint64_t stream, const WireTensor* results,
                int32_t num_results);
  void (*fail)(Transport* transport, uint64_t stream, int32_t code, const char* message);
  // Ends every stream with this status and stops listening. Returns when the last call to the
  // handler has returned, and frees the transport, whether or not start() has succeeded.
  void (*stop)(Transport* transport, int32_t code, const char* message);
};

// The only exported symbol.
__attribute__((visibility("default"))) const TransportApi* SeedRlTransportApi();

}  // extern "C"

#endif  // SEED_RL_GRPC_TRANSPORT_H_

"""Calls from actors to the learner over gRPC.

`seed_rl.grpc.server.Server` (needs TensorFlow and the compiled op) serves tf.functions;
`seed_rl.grpc.client.Client` (grpcio and NumPy only) calls them. Import them from there: this
package imports nothing by itself, so that an actor never loads TensorFlow.
"""

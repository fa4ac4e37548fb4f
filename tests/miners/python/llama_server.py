"""llama.cpp's own server, as the package xllamacpp brings it: MODEL PORT."""

import sys
import threading

from xllamacpp import CommonParams, Server

params = CommonParams()
params.model.path, params.port = sys.argv[1], int(sys.argv[2])
params.hostnames = ["127.0.0.1"]
params.n_ctx, params.n_parallel = 2048, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = Server(params)
print(server.listening_address, flush=True)
threading.Event().wait()

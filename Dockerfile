# The program `ombra` in an image of its own.
#
#   docker build -t ombra .
#   docker build --target runtime .        everything but the program; see packaging/docker
#
# Needs no BuildKit. Other bases: --build-arg BUILDER_IMAGE=… --build-arg RUNTIME_IMAGE=…
# The builder has Rust and Debian's package manager; both are of the same release of Debian.
ARG BUILDER_IMAGE=rust:1.90-bookworm
ARG RUNTIME_IMAGE=debian:bookworm-slim

# ---- what a container has besides the program --------------------------------------------------
FROM ${RUNTIME_IMAGE} AS runtime
LABEL org.opencontainers.image.title="ombra" \
      org.opencontainers.image.description="A blockchain node on which people pay for the work of AI agents" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
# The number is fixed, for those who have to set the owner of files from outside.
RUN groupadd --system --gid 10001 ombra \
 && useradd --system --uid 10001 --gid ombra --home-dir /var/lib/ombra --shell /usr/sbin/nologin ombra \
 && install -d -o ombra -g ombra -m 0700 /var/lib/ombra
ENV OMBRA_HOME=/var/lib/ombra
WORKDIR /var/lib/ombra
USER 10001:10001
# JSON-RPC, metrics, peers of consensus, peers of transactions
EXPOSE 8777 9777 30777 30778
STOPSIGNAL SIGTERM
# Whether the process answers. A node that catches up is alive, and not ready.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=6 \
  CMD ["ombra", "health", "--alive"]
ENTRYPOINT ["ombra"]
# Docker starts again whatever the exit code; a node that stopped for safety must stay down.
CMD ["start", "--hold-unsafe"]

# ---- the dependencies, in a layer of their own -------------------------------------------------
FROM ${BUILDER_IMAGE} AS dependencies
# RocksDB is compiled from source and its headers are read with libclang; the allocator has a makefile.
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++ libclang-dev make \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY .cargo .cargo
COPY Cargo.toml Cargo.lock ./
COPY types/Cargo.toml types/
COPY state/Cargo.toml state/
COPY store/Cargo.toml store/
COPY genesis/Cargo.toml genesis/
COPY txpool/Cargo.toml txpool/
COPY consensus/Cargo.toml consensus/
COPY p2p/Cargo.toml p2p/
COPY rpc/Cargo.toml rpc/
COPY wallet/Cargo.toml wallet/
COPY infer/Cargo.toml infer/
COPY agent/Cargo.toml agent/
COPY miner/Cargo.toml miner/
COPY gateway/Cargo.toml gateway/
COPY node/Cargo.toml node/
COPY allocator/Cargo.toml allocator/
COPY cli/Cargo.toml cli/
COPY fixtures/Cargo.toml fixtures/
COPY testkit/Cargo.toml testkit/
COPY tests/Cargo.toml tests/
COPY vendor vendor
# Empty crates in place of ours, so that this layer is kept until a dependency changes. Cargo wants
# the benchmarks and examples that a manifest names to be there, too.
RUN for crate in types state store genesis txpool consensus p2p rpc wallet infer agent miner gateway node allocator cli fixtures testkit; do \
      mkdir -p "$crate/src" "$crate/benches" "$crate/examples" && touch "$crate/src/lib.rs" || exit 1; \
      for bench in $(sed -n '/^\[\[bench\]\]$/{n;s/^name = "\(.*\)"$/\1/p}' "$crate/Cargo.toml"); do \
        touch "$crate/benches/$bench.rs" || exit 1; \
      done; \
      for example in $(sed -n '/^\[\[example\]\]$/{n;s/^name = "\(.*\)"$/\1/p}' "$crate/Cargo.toml"); do \
        touch "$crate/examples/$example.rs" || exit 1; \
      done; \
    done \
 && echo 'fn main() {}' >cli/src/main.rs \
 && cargo build --release --locked --package cli --bin ombra

# ---- the program -------------------------------------------------------------------------------
FROM dependencies AS build
COPY . .
# What the version says; the context has no Git.
ARG OMBRA_COMMIT=
ENV OMBRA_COMMIT=${OMBRA_COMMIT}
# The empty crates are newer than the sources.
RUN find . -name '*.rs' -not -path './target/*' -exec touch {} + \
 && cargo build --release --locked --package cli --bin ombra \
 && install -D -m 0755 target/release/ombra /out/ombra

# ---- the image ---------------------------------------------------------------------------------
FROM runtime
COPY --from=build /out/ombra /usr/local/bin/ombra

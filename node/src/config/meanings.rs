//! What each setting means, in one line: `ombra init` writes these lines into `config.toml`. The tables
//! of docs/operations.md section 12 and docs/rpc.md section 2.4 begin with them, which a test checks.

/// Every dotted key with its meaning, in the order in which they are written.
pub const MEANINGS: &[(&str, &str)] = &[
    (
        "rpc.listen",
        "address for JSON-RPC, WebSocket and the health endpoints; port 0 picks a free port",
    ),
    ("rpc.metrics_listen", "address for Prometheus metrics"),
    ("rpc.metrics", "whether to serve metrics"),
    ("rpc.origins", "origins of web pages that may call the node, in addition to the explorer"),
    (
        "rpc.hosts",
        "host names that the node accepts in the `Host` header, in addition to `localhost`",
    ),
    (
        "rpc.rate.requests_per_second",
        "how many requests per second the node allows from one address; 0 sets no limit",
    ),
    (
        "rpc.rate.burst",
        "how many requests from one address may come at once; 0 allows ten seconds' worth",
    ),
    (
        "rpc.rate.keys",
        "API keys, sent as `X-API-Key`; the node counts the requests of each key separately",
    ),
    (
        "rpc.rate.key_requests_per_second",
        "how many requests per second the node allows with one API key; 0 sets no limit",
    ),
    (
        "rpc.rate.trusted_proxies",
        "networks of proxies whose `X-Forwarded-For` the node believes, such as `\"10.0.0.0/8\"`",
    ),
    (
        "rpc.rate.clients_max",
        "the most addresses for which the node counts requests; each takes about 200 bytes",
    ),
    (
        "rpc.limits.client_share_percent",
        "the percentage of each shared resource that one client may have, 1 to 100",
    ),
    ("rpc.limits.connections_max", "the most open connections; any further connection gets 503"),
    ("rpc.limits.websockets_max", "the most WebSockets among the open connections"),
    ("rpc.limits.request_bytes_max", "the largest body of one POST"),
    ("rpc.limits.websocket_message_bytes_max", "the largest message on a WebSocket"),
    (
        "rpc.limits.request_memory_bytes_max",
        "the total size of the POST bodies and WebSocket messages that are not answered yet",
    ),
    (
        "rpc.limits.response_memory_bytes_max",
        "the total size of the answers that clients have not read yet",
    ),
    ("rpc.limits.response_bytes_max", "the largest answer"),
    (
        "rpc.limits.page_bytes_max",
        "the total size of the transactions from which the entries of one page of a list are made",
    ),
    ("rpc.limits.batch_calls_max", "the most calls in one array"),
    ("rpc.limits.websocket_calls_max", "the most unanswered calls of one WebSocket"),
    (
        "rpc.limits.websocket_queue_max",
        "the most messages that are waiting to be sent on one WebSocket",
    ),
    ("rpc.limits.subscriptions_max", "the most subscriptions of one WebSocket"),
    ("rpc.limits.streams_max", "the most open event streams and WebSockets under `/api`"),
    (
        "rpc.limits.waiting_calls_max",
        "the most calls of `ombra_waitForTransaction` and `ombra_waitForCall` that can wait",
    ),
    ("rpc.limits.pool_events_max", "the most pool events that the node keeps for slow subscribers"),
    (
        "rpc.limits.pool_events_bytes_max",
        "the most memory for the pool events that the node keeps, and their transactions",
    ),
    (
        "rpc.limits.subscription_lag_blocks_max",
        "how many blocks a subscriber may be behind before the node closes the subscription",
    ),
    ("rpc.limits.head_timeout_ms", "how long a client may take to send the head of a request"),
    (
        "rpc.limits.body_timeout_ms",
        "how long a client may take to send a body or a WebSocket message",
    ),
    ("rpc.limits.write_timeout_ms", "how long a client may take to read the answer"),
    (
        "rpc.limits.write_bytes_per_second_min",
        "how many bytes of an answer a client must read per second",
    ),
    ("rpc.limits.ping_interval_ms", "the interval between pings on a WebSocket, at least 1"),
    (
        "rpc.limits.shutdown_timeout_ms",
        "how much time open requests have to finish when the node stops",
    ),
    ("p2p.listen", "multiaddress on which the node listens for consensus peers"),
    ("p2p.peers", "multiaddresses of consensus peers to which the node stays connected"),
    ("p2p.open", "whether peers that are not in `p2p.peers` may connect for consensus"),
    ("p2p.gossip.listen", "multiaddress on which the node listens for transaction peers"),
    (
        "p2p.gossip.external",
        "multiaddresses that the node announces as its own, if peers cannot reach `listen`",
    ),
    (
        "p2p.gossip.peers",
        "multiaddresses of the named peers: transaction peers to which the node stays connected",
    ),
    (
        "p2p.gossip.exchange",
        "whether the node asks its peers for further peers, and tells them about its own",
    ),
    (
        "p2p.gossip.limits.inbound_max",
        "the most connections that other nodes have opened to this node",
    ),
    ("p2p.gossip.limits.outbound_max", "the most connections that this node opened"),
    (
        "p2p.gossip.limits.opening_max",
        "the most connections that are still being opened (before the end of the handshake)",
    ),
    (
        "p2p.gossip.limits.opening_per_group_max",
        "the most connections that one IPv4 /24 or IPv6 /64 network may be opening to this node",
    ),
    (
        "p2p.gossip.limits.per_address_max",
        "the most connections from one IP address, named peers not counted",
    ),
    (
        "p2p.gossip.limits.per_group_max",
        "the most connections from one IPv4 /24 or IPv6 /64 network, named peers not counted",
    ),
    (
        "p2p.gossip.limits.peers_wanted",
        "while the node has fewer peers than this, it looks for more",
    ),
    (
        "p2p.gossip.limits.waiting_max",
        "the most messages from peers that may wait for the pool to check them",
    ),
    ("p2p.gossip.limits.waiting_bytes_max", "the most bytes of these waiting messages"),
    ("p2p.gossip.limits.ban_ms", "how long the node bans a peer for its first offense"),
    ("consensus.timeout_propose_ms", "how long a validator waits for a complete proposal"),
    (
        "consensus.timeout_prevote_ms",
        "how long a validator waits, once a quorum has prevoted, until a quorum agrees",
    ),
    ("consensus.timeout_precommit_ms", "the same waiting time for precommits"),
    (
        "consensus.pardoned_height",
        "the node sends no evidence of contradictory messages that validators signed for this height",
    ),
    (
        "consensus.timeout_step_ms",
        "by how much each round after the first extends the three timeouts above",
    ),
    (
        "sync.wait_ms",
        "how long a starting node waits at most for half of its `p2p.gossip.peers` to answer",
    ),
    (
        "sync.stalled_ms",
        "how long the height may stand still while a peer shows a later block; 0 sets no limit",
    ),
    (
        "sync.trusted.height",
        "height of a block that somebody you trust has named; 0 if there is none",
    ),
    ("sync.trusted.hash", "hash of the block at `sync.trusted.height`"),
    (
        "sync.trust_period_ms",
        "a node whose newest block is older accepts only blocks that two named peers have",
    ),
    ("txpool.count_max", "the most transactions in the pool"),
    ("txpool.bytes_max", "the most bytes of transactions in the pool"),
    ("txpool.sender_count_max", "the most transactions of one sender"),
    (
        "txpool.nonce_window",
        "how far a nonce may be beyond the nonce of the sender's last executable transaction",
    ),
    (
        "txpool.queued_age_max_ms",
        "how long a transaction may be queued while earlier nonces of its sender are missing",
    ),
    ("txpool.age_max_ms", "from fork v7 on, how long a transaction may stay in the pool"),
    (
        "txpool.block_share",
        "each sender first gets at most the fraction 1/`txpool.block_share` of a block",
    ),
    (
        "txpool.rebuild_slice",
        "when the pool executes its transactions again, it takes a quarter of this number at once",
    ),
    (
        "txpool.dropped_count_max",
        "for how many dropped transactions the pool remembers why it dropped them",
    ),
    ("txpool.dropped_bytes_max", "the most bytes of dropped transactions that the pool remembers"),
    ("txpool.dropped_age_max_ms", "how long the pool remembers a dropped transaction"),
    (
        "txpool.retry_after_ms",
        "how long `POOL_FULL` and `SENDER_LIMIT` tell the client to wait before it tries again",
    ),
    ("storage.block_cache_bytes", "memory in which RocksDB caches the blocks of its files"),
    (
        "storage.write_buffer_bytes",
        "memory for writes that RocksDB has not yet put into sorted files on disk",
    ),
    ("storage.hot_cache_bytes", "memory for the rows that execution reads most often"),
    (
        "storage.free_disk_bytes_min",
        "if less disk space than this is free, the node stops gracefully; 0 disables the check",
    ),
    (
        "snapshots.interval_blocks",
        "the node makes a snapshot of the state at each multiple of this height; 0 makes none",
    ),
    ("snapshots.keep", "how many snapshots to keep, 1 to 4"),
    (
        "snapshots.fetch",
        "whether a node without a database downloads a snapshot instead of all blocks",
    ),
    ("log.filter", "a level, or `target=level,…` for single modules"),
    ("log.format", "`text`, or `json` with one object per line"),
    ("shutdown.time_ms", "how long a graceful stop may take"),
];

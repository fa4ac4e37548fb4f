//! What a peer can have a node hold by opening streams.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};
use libp2p::core::muxing::{StreamMuxerBox, StreamMuxerExt as _, SubstreamBox};
use libp2p::core::transport::{DialOpts, PortUse};
use libp2p::core::upgrade::Version;
use libp2p::core::{Endpoint, Transport as _};
use libp2p::identity::Keypair;
use libp2p::{Multiaddr, noise, tcp, yamux};

use crate::support::{Node, config, eventually};

/// Streams that the peer opens; a node lets in 64.
const OPENED: usize = 200;

/// Connects to a node without a swarm.
async fn connect(node: &Node) -> StreamMuxerBox {
    let key = Keypair::generate_ed25519();
    let security = noise::Config::new(&key).expect("a handshake");
    let mut transport = tcp::tokio::Transport::new(tcp::Config::default())
        .upgrade(Version::V1Lazy)
        .authenticate(security)
        .multiplex(yamux::Config::default())
        .map(|(_, muxer), _| StreamMuxerBox::new(muxer))
        .boxed();
    let listens = node.handle.listen_addresses();
    let address: Multiaddr = listens[0].parse().expect("an address");
    let options = DialOpts { role: Endpoint::Dialer, port_use: PortUse::New };
    transport.dial(address, options).expect("a dial").await.expect("a connection")
}

/// Opens streams and says on each that it is about to agree on a protocol, and nothing more.
async fn open(muxer: &mut StreamMuxerBox, count: usize) -> Vec<SubstreamBox> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = poll_fn(|cx| muxer.poll_outbound_unpin(cx)).await.expect("a stream");
        let greeting = b"\x13/multistream/1.0.0\n";
        stream.write_all(greeting).await.expect("room in the window");
        poll_fn(|cx| {
            // Sends what was written.
            let _progress = muxer.poll_unpin(cx);
            Pin::new(&mut stream).poll_flush(cx)
        })
        .await
        .expect("the stream is open");
        streams.push(stream);
    }
    streams
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_beyond_what_an_honest_peer_opens_are_reset() {
    let node = Node::start(config()).await;
    let mut muxer = connect(&node).await;
    let streams = open(&mut muxer, OPENED).await;
    let ended = Arc::new(AtomicUsize::new(0));
    let watch = |mut stream: SubstreamBox| {
        let ended = ended.clone();
        tokio::spawn(async move {
            let mut answer = Vec::new();
            drop(stream.read_to_end(&mut answer).await);
            ended.fetch_add(1, Ordering::SeqCst);
        })
    };
    let watched: Vec<_> = streams.into_iter().map(watch).collect();
    let driven = tokio::spawn(poll_fn(move |cx| {
        let progress = muxer.poll_unpin(cx);
        if matches!(progress, Poll::Ready(Err(_))) { Poll::Ready(()) } else { Poll::Pending }
    }));
    let ended = || ended.load(Ordering::SeqCst);
    eventually("the streams beyond are reset", || ended() >= OPENED - 64).await;
    assert_eq!(OPENED - 64, ended(), "the others are waited for");
    assert!(!driven.is_finished(), "the connection stays");
    drop(watched);
}

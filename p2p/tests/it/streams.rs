//! What a peer can do to a node with streams and the frames that carry them.

use std::future::{Ready, poll_fn, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};
use libp2p::core::muxing::{StreamMuxer, StreamMuxerEvent};
use libp2p::core::transport::{DialOpts, PortUse};
use libp2p::core::upgrade::{
    InboundConnectionUpgrade, Negotiated, OutboundConnectionUpgrade, UpgradeInfo, Version,
};
use libp2p::core::{Endpoint, Transport as _};
use libp2p::identity::Keypair;
use libp2p::{Multiaddr, noise, tcp};
use yamux::Mode;

use crate::support::{Node, config, eventually, limits};

type Socket = Negotiated<noise::Output<Negotiated<tcp::tokio::TcpStream>>>;

/// Agrees on yamux and leaves the frames to the test.
#[derive(Clone)]
struct Bare;

impl UpgradeInfo for Bare {
    type Info = &'static str;
    type InfoIter = std::iter::Once<&'static str>;

    fn protocol_info(&self) -> Self::InfoIter {
        std::iter::once("/yamux/1.0.0")
    }
}

impl OutboundConnectionUpgrade<Socket> for Bare {
    type Output = BareMuxer;
    type Error = io::Error;
    type Future = Ready<io::Result<BareMuxer>>;

    fn upgrade_outbound(self, io: Socket, _: &'static str) -> Self::Future {
        ready(Ok(BareMuxer(io)))
    }
}

impl InboundConnectionUpgrade<Socket> for Bare {
    type Output = BareMuxer;
    type Error = io::Error;
    type Future = Ready<io::Result<BareMuxer>>;

    fn upgrade_inbound(self, io: Socket, _: &'static str) -> Self::Future {
        ready(Ok(BareMuxer(io)))
    }
}

/// Does nothing with its connection.
struct BareMuxer(Socket);

impl StreamMuxer for BareMuxer {
    type Substream = Socket;
    type Error = io::Error;

    fn poll_inbound(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<Socket>> {
        Poll::Pending
    }

    fn poll_outbound(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<Socket>> {
        Poll::Pending
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<StreamMuxerEvent>> {
        Poll::Pending
    }
}

/// Connects to a node without a swarm.
async fn connect(node: &Node) -> Socket {
    let security = noise::Config::new(&Keypair::generate_ed25519()).expect("a handshake");
    let mut transport = tcp::tokio::Transport::new(tcp::Config::default())
        .upgrade(Version::V1)
        .authenticate(security)
        .multiplex(Bare);
    let listens = node.handle.listen_addresses();
    let address: Multiaddr = listens[0].parse().expect("an address");
    let options = DialOpts { role: Endpoint::Dialer, port_use: PortUse::New };
    let (_, bare) = transport.dial(address, options).expect("a dial").await.expect("a connection");
    bare.0
}

/// Streams that the peer opens; a node lets in 64.
const OPENED: usize = 200;

/// Opens streams and says on each that it is about to agree on a protocol, and nothing more.
async fn open(connection: &mut yamux::Connection<Socket>) -> Vec<yamux::Stream> {
    let mut streams = Vec::new();
    for _ in 0..OPENED {
        let mut stream = poll_fn(|cx| connection.poll_new_outbound(cx)).await.expect("a stream");
        stream.write_all(b"\x13/multistream/1.0.0\n").await.expect("room in the window");
        poll_fn(|cx| {
            // Sends what was written.
            let _progress = connection.poll_next_inbound(cx);
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
    let socket = connect(&node).await;
    let mut connection = yamux::Connection::new(socket, yamux::Config::default(), Mode::Client);
    let streams = open(&mut connection).await;
    let ended = Arc::new(AtomicUsize::new(0));
    for mut stream in streams {
        let ended = ended.clone();
        tokio::spawn(async move {
            drop(stream.read_to_end(&mut Vec::new()).await);
            ended.fetch_add(1, Ordering::SeqCst);
        });
    }
    let driven = tokio::spawn(poll_fn(move |cx| match connection.poll_next_inbound(cx) {
        Poll::Ready(None | Some(Err(_))) => Poll::Ready(()),
        Poll::Ready(Some(Ok(_))) => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        Poll::Pending => Poll::Pending,
    }));
    let ended = || ended.load(Ordering::SeqCst);
    eventually("the streams beyond are reset", || ended() >= OPENED - 64).await;
    assert_eq!(OPENED - 64, ended(), "the others are waited for");
    assert!(!driven.is_finished(), "the connection stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_beyond_all_measure_costs_its_sender_the_connection_and_nobody_a_place() {
    let node = Node::start(limits(|limits| limits.per_address_max = 1)).await;
    let mut socket = connect(&node).await;
    // A window update that opens a stream: 256 KiB and all that fits into 32 bits.
    let frame = [0, 1, 0, 1, 0, 0, 0, 1, 255, 255, 255, 255];
    socket.write_all(&frame).await.expect("an open connection");
    socket.flush().await.expect("an open connection");
    drop(socket.read_to_end(&mut Vec::new()).await);
    let guest = Node::start(config()).await;
    guest.meet(&node).await;
}

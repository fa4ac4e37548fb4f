//! Connections that come from an address of one's choice.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// An address at which whatever comes is handed on to another, as if it came from `from`. To be called
/// within the runtime that does so.
pub(super) fn to(address: &str, from: &str) -> anyhow::Result<Multiaddr> {
    let (target, from) = (socket(&address.parse()?).context("no IP address")?, from.parse()?);
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let listener = TcpListener::from_std(listener)?;
    tokio::spawn(async move {
        // Ends with the runtime.
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(hand_on(stream, target, from));
        }
    });
    Ok(format!("/ip4/127.0.0.1/tcp/{port}").parse()?)
}

async fn hand_on(mut near: TcpStream, target: SocketAddr, from: IpAddr) -> std::io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(from, 0))?;
    let mut far = socket.connect(target).await?;
    tokio::io::copy_bidirectional(&mut near, &mut far).await?;
    Ok(())
}

fn socket(address: &Multiaddr) -> Option<SocketAddr> {
    let mut parts = address.iter();
    match (parts.next()?, parts.next()?) {
        (Protocol::Ip4(ip), Protocol::Tcp(port)) => Some(SocketAddr::new(ip.into(), port)),
        _ => None,
    }
}

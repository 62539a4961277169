//! Sockets in a network namespace: a thread of its own enters it, makes them and ends, so that nothing else of the
//! process moves.

use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Where `ip netns` names namespaces.
pub fn path(netns: &str) -> PathBuf {
    Path::new("/run/netns").join(netns)
}

/// What `work` makes in the namespace of that name; `None` is the process's own. Blocks until it is made.
pub fn inside<T: Send>(
    netns: Option<&str>,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let Some(name) = netns else { return work() };
    let path = path(name);
    let entered = || {
        let place = |error: io::Error| {
            let text = format!("network namespace {}: {error}", path.display());
            io::Error::new(error.kind(), text)
        };
        let namespace = File::open(&path).map_err(place)?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|errno| place(errno.into()))?;
        work()
    };
    let died = |_| Err(io::Error::other("the thread that makes a socket panicked"));
    std::thread::scope(|scope| scope.spawn(entered).join().unwrap_or_else(died))
}

/// A listening socket, not blocking. The address need not be there yet: addresses of new VPCs come when they come.
pub fn listen_tcp(netns: Option<&str>, address: SocketAddrV4) -> io::Result<TcpListener> {
    let made = inside(netns, || {
        let socket = bound(SocketType::STREAM, address)?;
        net::listen(&socket, BACKLOG)?;
        Ok(TcpListener::from(socket))
    });
    made.map_err(|error| about("listen for TCP on", address, &error))
}

/// A bound UDP socket, not blocking; the address need not be there yet.
pub fn listen_udp(netns: Option<&str>, address: SocketAddrV4) -> io::Result<UdpSocket> {
    let made = inside(netns, || {
        bound(SocketType::DGRAM, address).map(UdpSocket::from)
    });
    made.map_err(|error| about("listen for UDP on", address, &error))
}

/// A TCP connection made from inside, blocking until it stands or `timeout` is over.
pub fn connect(
    netns: Option<&str>,
    address: SocketAddrV4,
    timeout: Duration,
) -> io::Result<TcpStream> {
    let to = SocketAddr::V4(address);
    inside(netns, || TcpStream::connect_timeout(&to, timeout))
        .map_err(|error| about("connect to", address, &error))
}

fn bound(kind: SocketType, address: SocketAddrV4) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::INET, kind, flags, None)?;
    if kind == SocketType::STREAM {
        net::sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    if *address.ip() != Ipv4Addr::UNSPECIFIED {
        net::sockopt::set_ip_freebind(&socket, true)?;
    }
    net::bind(&socket, &address)?;
    Ok(socket)
}

fn about(what: &str, address: SocketAddrV4, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what} {address}: {error}"))
}

//! Sockets in a network namespace.

use crate::netns::run_inside;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// A listening socket, not blocking. The address need not be there yet: addresses of new VPCs come when they come.
pub fn listen_tcp(netns: &str, address: SocketAddr) -> io::Result<TcpListener> {
    let made = run_inside(netns, || -> io::Result<TcpListener> {
        let socket = bind_socket(SocketType::STREAM, address)?;
        net::listen(&socket, BACKLOG)?;
        Ok(TcpListener::from(socket))
    })?;
    made.map_err(|error| socket_error("listen for TCP on", address, &error))
}

/// A bound UDP socket, not blocking; the address need not be there yet.
pub fn listen_udp(netns: &str, address: SocketAddr) -> io::Result<UdpSocket> {
    let made = run_inside(netns, || {
        bind_socket(SocketType::DGRAM, address).map(UdpSocket::from)
    })?;
    made.map_err(|error| socket_error("listen for UDP on", address, &error))
}

fn bind_socket(kind: SocketType, address: SocketAddr) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = net::socket_with(family, kind, flags, None)?;
    if kind == SocketType::STREAM {
        net::sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    if !address.ip().is_unspecified() {
        match address {
            SocketAddr::V4(_) => net::sockopt::set_ip_freebind(&socket, true)?,
            SocketAddr::V6(_) => net::sockopt::set_ipv6_freebind(&socket, true)?,
        }
    }
    net::bind(&socket, &address)?;
    Ok(socket)
}

fn socket_error(what: &str, address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what} {address}: {error}"))
}

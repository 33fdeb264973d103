//! Small writes that follow each other, in one call to the system.
//!
//! HTTP/2 writes the head of a call, its body and its end one after the other, and flushes each. On a connection without
//! delay each becomes a packet that wakes the other side: for an epoch of milliseconds, that costs more than its bytes do.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes that are held back.
const MOST_HELD: usize = 4 << 10;
/// The most slices of one write, that of the held bytes included.
const MOST_SLICES: usize = 16;

/// A connection that holds small writes back until its task is polled once more, and sends them together with what was
/// written until then. A flush that finds them held back wakes that task, so they never wait for anything else.
#[derive(Debug)]
pub struct GatheredWrites<IO> {
    io: IO,
    held: Vec<u8>,
    /// The most bytes that are held back.
    most: usize,
    /// Whether a flush was already put off.
    is_due: bool,
    /// Until the other side has said something, it may wait for our first words.
    is_open: bool,
}

impl<IO: AsyncWrite + Unpin> GatheredWrites<IO> {
    /// Gathers the writes of a connection.
    ///
    /// Encryption belongs below it: TLS does not flush again what it believes to be sent.
    pub fn new(io: IO) -> Self {
        Self { io, held: Vec::new(), most: MOST_HELD, is_due: false, is_open: false }
    }

    /// Holds nothing back.
    pub fn ungathered(io: IO) -> Self {
        Self { most: 0, ..Self::new(io) }
    }

    /// Sends what is held back.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let sent = ready!(Pin::new(&mut self.io).poll_write(cx, &self.held))?;
            if sent == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            self.held.drain(..sent);
        }
        self.is_due = false;
        Poll::Ready(Ok(()))
    }

    /// Sends what is held back and what follows it; returns how much of the latter was sent.
    fn poll_send_with(&mut self, cx: &mut Context<'_>, more: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        while !self.held.is_empty() && self.io.is_write_vectored() {
            let mut slices = [IoSlice::new(&[]); MOST_SLICES];
            slices[0] = IoSlice::new(&self.held);
            for (slice, more) in slices[1..].iter_mut().zip(more) {
                *slice = *more;
            }
            let count = MOST_SLICES.min(1 + more.len());
            let sent = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, &slices[..count]))?;
            if sent == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            let of_held = sent.min(self.held.len());
            self.held.drain(..of_held);
            if sent > of_held {
                self.is_due = false;
                return Poll::Ready(Ok(sent - of_held));
            }
        }
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.io).poll_write_vectored(cx, more)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for GatheredWrites<IO> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = bufs.iter().map(|buf| buf.len()).sum::<usize>();
        if self.held.len() + length > self.most {
            return self.poll_send_with(cx, bufs);
        }
        for buf in bufs {
            self.held.extend_from_slice(buf);
        }
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.held.is_empty() && self.is_open && !self.is_due {
            self.is_due = true;
            cx.waker().wake_by_ref();
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for GatheredWrites<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        self.is_open |= buf.filled().len() > before;
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::{Wake, Waker};

    /// Notes each write; takes at most so many bytes of one.
    struct Writes {
        writes: Vec<Vec<u8>>,
        most: usize,
    }

    impl AsyncWrite for Writes {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(buf)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let all = bufs.iter().flat_map(|buf| buf.iter().copied());
            let taken: Vec<u8> = all.take(self.most).collect();
            let length = taken.len();
            self.writes.push(taken);
            Poll::Ready(Ok(length))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncRead for Writes {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            buf.put_slice(b"hello");
            Poll::Ready(Ok(()))
        }
    }

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    fn write(io: &mut GatheredWrites<Writes>, cx: &mut Context<'_>, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Poll::Ready(Ok(sent)) = Pin::new(&mut *io).poll_write(cx, bytes) else { panic!() };
            bytes = &bytes[sent..];
        }
    }

    fn flush(io: &mut GatheredWrites<Writes>, cx: &mut Context<'_>) {
        assert!(Pin::new(io).poll_flush(cx).is_ready());
    }

    fn gathered(most: usize) -> GatheredWrites<Writes> {
        GatheredWrites::new(Writes { writes: vec![], most })
    }

    fn hear(io: &mut GatheredWrites<Writes>, cx: &mut Context<'_>) {
        assert!(Pin::new(io).poll_read(cx, &mut ReadBuf::new(&mut [0; 9])).is_ready());
    }

    #[test]
    fn small_writes_go_out_together_once_the_task_is_polled_again() {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(wakes.clone());
        let (mut io, mut cx) = (gathered(usize::MAX), Context::from_waker(&waker));
        write(&mut io, &mut cx, b"preface");
        flush(&mut io, &mut cx);
        assert_eq!(io.io.writes, [b"preface"], "the other side may wait for it");
        hear(&mut io, &mut cx);
        write(&mut io, &mut cx, b"head ");
        flush(&mut io, &mut cx);
        assert_eq!((io.io.writes.len(), wakes.0.load(SeqCst)), (1, 1), "held back, and polled again");
        write(&mut io, &mut cx, b"end");
        flush(&mut io, &mut cx);
        assert_eq!(io.io.writes[1..], [b"head end"]);
        write(&mut io, &mut cx, b"next");
        flush(&mut io, &mut cx);
        assert_eq!((io.io.writes.len(), wakes.0.load(SeqCst)), (2, 2));
        assert!(Pin::new(&mut io).poll_shutdown(&mut cx).is_ready());
        assert_eq!(io.io.writes[2..], [b"next"]);
    }

    #[test]
    fn what_is_not_to_be_gathered_is_written_at_once() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut io = GatheredWrites::ungathered(Writes { writes: vec![], most: usize::MAX });
        hear(&mut io, &mut cx);
        write(&mut io, &mut cx, b"alert");
        assert_eq!(io.io.writes, [b"alert"], "nobody flushes it");
    }

    #[test]
    fn every_byte_is_written_once_and_in_order() {
        let lengths = [1, 5, 4095, 4096, 4097, 3, 20_000, 2, 2, 4000, 200];
        let bytes: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|at| (at % 251) as u8).collect();
        for most in [1, 3, 100, 5000, usize::MAX] {
            let mut cx = Context::from_waker(Waker::noop());
            let mut io = gathered(most);
            hear(&mut io, &mut cx);
            let mut rest = &bytes[..];
            for (at, length) in lengths.into_iter().enumerate() {
                let (next, after) = rest.split_at(length);
                write(&mut io, &mut cx, next);
                if at % 3 == 0 {
                    flush(&mut io, &mut cx);
                }
                rest = after;
            }
            assert!(Pin::new(&mut io).poll_shutdown(&mut cx).is_ready());
            assert_eq!(io.io.writes.concat(), bytes, "{most} bytes at a time");
        }
    }
}

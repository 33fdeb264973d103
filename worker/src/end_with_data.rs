//! Calls whose bodies end with their last data.

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service, http};

/// A service that looks one frame ahead in the body of each call. A client of gRPC learns that a body is over only when it asks
/// for more, and would send that as an empty frame of its own.
#[derive(Clone)]
pub(crate) struct EndWithData<S>(pub(crate) S);

impl<S: Service<http::Request<Body>>> Service<http::Request<Body>> for EndWithData<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        self.0.call(request.map(|body| Body::new(Ahead { body, next: None, is_over: false })))
    }
}

type Frames = Option<Result<Frame<Bytes>, Status>>;

/// A body of which one more frame was read.
struct Ahead {
    body: Body,
    next: Frames,
    is_over: bool,
}

impl HttpBody for Ahead {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Frames> {
        if self.is_over {
            return Poll::Ready(self.next.take());
        }
        let frame = match self.next.take() {
            Some(frame) => Some(frame),
            None => ready!(Pin::new(&mut self.body).poll_frame(cx)),
        };
        match &frame {
            None => self.is_over = true,
            Some(Err(_)) => {}
            Some(Ok(_)) => {
                if let Poll::Ready(next) = Pin::new(&mut self.body).poll_frame(cx) {
                    self.is_over = next.is_none();
                    self.next = next;
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.next.is_none() && (self.is_over || self.body.is_end_stream())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::task::Waker;

    /// Frames that are there, or not yet.
    struct Scripted(VecDeque<Poll<Frames>>);

    impl HttpBody for Scripted {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Frames> {
            self.0.pop_front().expect("it is not asked again after its end")
        }
    }

    fn data(bytes: &'static [u8]) -> Poll<Frames> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(bytes)))))
    }

    /// What comes of a body: each frame, and whether the body says that it was the last.
    fn read(script: impl IntoIterator<Item = Poll<Frames>>) -> Vec<(Option<Bytes>, bool)> {
        let body = Body::new(Scripted(script.into_iter().collect()));
        let mut ahead = Ahead { body, next: None, is_over: false };
        let mut cx = Context::from_waker(Waker::noop());
        let mut read = vec![];
        while !ahead.is_end_stream() {
            match Pin::new(&mut ahead).poll_frame(&mut cx) {
                Poll::Ready(Some(frame)) => {
                    let bytes = frame.map(|frame| frame.into_data().unwrap());
                    read.push((bytes.ok(), ahead.is_end_stream()));
                }
                Poll::Ready(None) => read.push((Some(Bytes::new()), true)),
                Poll::Pending => read.push((None, false)),
            }
        }
        read
    }

    #[test]
    fn the_last_data_says_that_it_is_the_last() {
        let bytes = |bytes: &'static [u8]| Some(Bytes::from_static(bytes));
        let (end, later) = (|| Poll::Ready(None), || Poll::Pending);
        assert_eq!(read([data(b"one"), end()]), [(bytes(b"one"), true)]);
        assert_eq!(
            read([data(b"one"), data(b"two"), end()]),
            [(bytes(b"one"), false), (bytes(b"two"), true)]
        );
        // What comes later is waited for as before.
        assert_eq!(
            read([data(b"one"), later(), data(b"two"), later(), end()]),
            [(bytes(b"one"), false), (bytes(b"two"), false), (bytes(b""), true)]
        );
        let failed = || Poll::Ready(Some(Err(Status::internal("broken"))));
        assert_eq!(
            read([data(b"one"), failed(), end()]),
            [(bytes(b"one"), false), (None, false), (bytes(b""), true)]
        );
    }
}

//! Turns errors and panics of this side into Java exceptions.

use std::any::Any;

use jni::errors::ErrorPolicy;
use jni::strings::JNIString;
use jni::{Env, jni_str};
use merganser_hadoop_node::shuffle::{ShuffleError, WritableOrderError};

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The call's arguments make no sense.
    #[error("{0}")]
    Call(&'static str),
    /// The description of the order is malformed.
    #[error(transparent)]
    Order(#[from] WritableOrderError),
    /// The merge failed.
    #[error(transparent)]
    Merge(#[from] ShuffleError),
    /// The JVM refused a call. It then has a pending exception of its own.
    #[error("the Java machine refused a call: {0}")]
    Java(#[from] jni::errors::Error),
}

/// Throws `java.io.IOException`, for errors and for panics, unless Java has an exception pending.
pub(crate) struct ThrowIoException;

impl<T: Default> ErrorPolicy<T, Failure> for ThrowIoException {
    type Captures<'local: 'call, 'call> = ();

    fn on_error<'local: 'call, 'call>(
        env: &mut Env<'local>,
        (): &mut (),
        failure: Failure,
    ) -> jni::errors::Result<T> {
        throw(env, &failure.to_string());
        Ok(T::default())
    }

    fn on_panic<'local: 'call, 'call>(
        env: &mut Env<'local>,
        (): &mut (),
        payload: Box<dyn Any + Send>,
    ) -> jni::errors::Result<T> {
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        throw(
            env,
            &format!(
                "the native merge has a defect ({message}): set merganser.reduce.native to false"
            ),
        );
        Ok(T::default())
    }
}

fn throw(env: &mut Env<'_>, sentence: &str) {
    if !env.exception_check() {
        // A successful throw is reported as an error too: an exception is pending.
        let _ = env.throw_new(jni_str!("java/io/IOException"), JNIString::new(sentence));
    }
}

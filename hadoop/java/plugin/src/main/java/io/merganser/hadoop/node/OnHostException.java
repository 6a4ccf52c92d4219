package io.merganser.hadoop.node;

/** The map must run on the host. Nothing of it has been done that would have to be undone. */
final class OnHostException extends Exception {
  private static final long serialVersionUID = 1;

  private final HostReason reason;

  OnHostException(HostReason reason, String detail) {
    super(detail);
    this.reason = reason;
  }

  OnHostException(HostReason reason, String detail, Throwable cause) {
    super(detail, cause);
    this.reason = reason;
  }

  HostReason reason() {
    return reason;
  }
}

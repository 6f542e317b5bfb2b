package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errChanged says that the file is another one than before.
var errChanged = errors.New("the bundle was replaced while it was being read")

// LocalError is a failure on this side: the disk is full, or the file cannot be
// written.
type LocalError struct{ Err error }

func (e *LocalError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *LocalError) Unwrap() error { return e.Err }

// BundleError says that the bytes arrived and are not a whole bundle.
type BundleError struct{ Err error }

func (e *BundleError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *BundleError) Unwrap() error { return e.Err }

// ResponseError is an answer that is not the file.
type ResponseError struct {
	// Code is the HTTP status, or 0 if the fault is not in the status.
	Code int
	// Message is what the server said, which may be hostile text.
	Message string
	// Status is set if the API server itself answered, not the kubelet behind it.
	Status *metav1.Status
}

func (e *ResponseError) Error() string {
	if e.Code == 0 {
		return "the answer is not a bundle: " + e.Message
	}
	return fmt.Sprintf("%d %s: %s", e.Code, http.StatusText(e.Code), e.Message)
}

// unexpected returns an error for a response that does not bring the file's bytes.
func unexpected(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusPartialContent:
		if kind == "text/html" {
			// How the kubelet lists a folder.
			return &ResponseError{Message: "a page of HTML; on the node there is a folder in the bundle's place"}
		}
		if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
			return &ResponseError{Message: fmt.Sprintf("encoded as %.40q, which was not asked for", enc)}
		}
		return nil
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return &ResponseError{Message: fmt.Sprintf("a redirection to %.200q; on the node there is a folder in the bundle's place", resp.Header.Get("Location"))}
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<10))
	e := &ResponseError{Code: resp.StatusCode, Message: strings.TrimSpace(string(body))}
	status := &metav1.Status{}
	if kind == "application/json" && json.Unmarshal(body, status) == nil && status.Kind == "Status" {
		e.Status, e.Message = status, status.Message
	}
	return e
}

// retryable reports whether another request may succeed.
func retryable(err error) bool {
	var (
		local  *LocalError
		broken *BundleError
		resp   *ResponseError
	)
	switch {
	case errors.As(err, &local), errors.As(err, &broken):
		return false
	case errors.As(err, &resp):
		switch resp.Code {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		case http.StatusInternalServerError:
			// The API server answers so when it cannot reach the kubelet.
			return true
		}
		return false
	}
	return true
}

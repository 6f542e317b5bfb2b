package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// errSuperseded says that the request that a status is for is gone: the object was
// edited, deleted or recreated. The watch tells what came instead.
var errSuperseded = errors.New("the request has changed meanwhile")

// writeTimeout bounds one write of a status, with its conflicts.
const writeTimeout = 20 * time.Second

// statusWriter writes the status of one node's object.
type statusWriter struct {
	client rest.Interface
	name   string
}

// write applies change to the status of the object as the API server has it now,
// if it still is the request k, and returns the object as it is afterwards.
func (w *statusWriter) write(ctx context.Context, k key, change func(*v1alpha1.NodeDiagnostic)) (*v1alpha1.NodeDiagnostic, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var nd *v1alpha1.NodeDiagnostic
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		nd = &v1alpha1.NodeDiagnostic{}
		err := w.client.Get().Resource(v1alpha1.Resource).Name(w.name).Do(ctx).Into(nd)
		switch {
		case apierrors.IsNotFound(err):
			return errSuperseded
		case err != nil:
			return err
		case keyOf(nd) != k:
			return errSuperseded
		}
		before := nd.Status.DeepCopy()
		change(nd)
		if equality.Semantic.DeepEqual(*before, nd.Status) {
			return nil
		}
		err = w.client.Put().Resource(v1alpha1.Resource).Name(w.name).SubResource("status").Body(nd).Do(ctx).Into(nd)
		if apierrors.IsNotFound(err) {
			return errSuperseded
		}
		return err
	})
	if err != nil && !errors.Is(err, errSuperseded) {
		return nil, fmt.Errorf("write the status of NodeDiagnostic %s: %w", w.name, err)
	}
	return nd, err
}

// setLog sets the state of the log capture, and the condition that says the same.
func setLog(nd *v1alpha1.NodeDiagnostic, state v1alpha1.CaptureState) {
	nd.Status.SetCapture(v1alpha1.CaptureTypeLog, state)
	cond := metav1.Condition{
		Type:               v1alpha1.ConditionLogCaptured,
		Status:             metav1.ConditionFalse,
		Reason:             v1alpha1.ConditionReasonRunning,
		Message:            "the agent is collecting",
		ObservedGeneration: nd.Generation,
	}
	if c := state.Completed; c != nil {
		cond.Status, cond.Reason = metav1.ConditionTrue, v1alpha1.ConditionReasonCompleted
		cond.Message = c.Reason + ": " + c.Message
	}
	meta.SetStatusCondition(&nd.Status.Conditions, cond)
}

// answerPacket answers a packet capture that is asked for.
func answerPacket(nd *v1alpha1.NodeDiagnostic, now metav1.Time) {
	if !packetDue(nd) {
		return
	}
	nd.Status.SetCapture(v1alpha1.CaptureTypePacket, v1alpha1.CaptureState{Completed: &v1alpha1.CaptureStateCompleted{
		Reason:             v1alpha1.ReasonFailure,
		Message:            "packet capture isn't supported by this agent yet; nothing was captured or uploaded",
		StartedAt:          now,
		FinishedAt:         now,
		ObservedGeneration: nd.Generation,
	}})
}

#!/bin/bash
# The calls that the EKS node monitoring agent's kubectl plugin makes, literally.
# They are its contract with an agent: do not change them to make a test pass.
#
# NODE is the node, OUT the file for its bundle; kubectl is in PATH.
set -euo pipefail
kubectl apply -f - <<YAML
apiVersion: eks.amazonaws.com/v1alpha1
kind: NodeDiagnostic
metadata:
  name: $NODE
spec:
  logCapture:
    destination: node
    categories:
    - All
YAML
kubectl wait --for=jsonpath='{.status.captureStatuses[0].state.completed}' "nodediagnostic/$NODE" --timeout=300s
reason=$(kubectl get "nodediagnostic/$NODE" -o jsonpath='{.status.captureStatuses[0].state.completed.reason}')
echo "reason: $reason"
kubectl get --raw "/api/v1/nodes/$NODE/proxy/logs/support/$NODE-logs.tar.gz" >"$OUT"
kubectl delete nodediagnostic "$NODE"

"""One process that is AWS on this machine: control plane, data plane, instances, metrics, alarms, scaling."""

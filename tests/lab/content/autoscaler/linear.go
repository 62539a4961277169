package main

import "math"

// linear is the ConfigMap's entry of the mode of that name.
type linear struct {
	CoresPerReplica           float64 `json:"coresPerReplica"`
	NodesPerReplica           float64 `json:"nodesPerReplica"`
	Min                       int32   `json:"min"`
	Max                       int32   `json:"max"`
	PreventSinglePointFailure bool    `json:"preventSinglePointFailure"`
	IncludeUnschedulableNodes bool    `json:"includeUnschedulableNodes"`
}

// replicas is the larger of what cores and nodes ask for, within the bounds; at least 1, and 2 where
// a single one would be a single point of failure on several nodes.
func (l linear) replicas(nodes int, cores float64) int32 {
	wanted := int32(0)
	if l.CoresPerReplica > 0 {
		wanted = int32(math.Ceil(cores / l.CoresPerReplica))
	}
	if l.NodesPerReplica > 0 {
		wanted = max(wanted, int32(math.Ceil(float64(nodes)/l.NodesPerReplica)))
	}
	least := max(l.Min, 1)
	if l.PreventSinglePointFailure && nodes > 1 {
		least = max(least, 2)
	}
	wanted = max(wanted, least)
	if l.Max > 0 {
		wanted = min(wanted, l.Max)
	}
	return wanted
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"sync"

	"github.com/flannel-io/flannel/pkg/backend"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/lease"
	"github.com/flannel-io/flannel/pkg/subnet"
	"github.com/flannel-io/flannel/pkg/trafficmngr"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
	"github.com/flannel-io/flannel/pkg/trafficmngr/nftables"
	log "k8s.io/klog/v2"
)

// register makes the node's part of the network: its interface and its lease.
func register(ctx context.Context, workers *sync.WaitGroup, leases subnet.Manager, config *subnet.Config, opts *options) (backend.Network, error) {
	if stored, stored6 := leases.GetStoredPublicIP(ctx); stored != "" || stored6 != "" {
		// What an operator wrote on the Node wins over the flags.
		if stored != "" {
			opts.publicIP = stored
		}
		if stored6 != "" {
			opts.publicIPv6 = stored6
		}
	}
	external, err := externalInterface(config, opts)
	if err != nil {
		return nil, err
	}
	kind, err := backend.NewManager(ctx, leases, external).GetBackend(config.BackendType)
	if err != nil {
		return nil, fmt.Errorf("error fetching backend: %w", err)
	}
	network, err := kind.RegisterNetwork(ctx, workers, config)
	if err != nil {
		return nil, fmt.Errorf("error registering network: %w", err)
	}
	return network, nil
}

// externalInterface finds the interface to the other nodes: the first that --iface, then
// --iface-regex, then --iface-can-reach name; without any of them the default route's.
func externalInterface(config *subnet.Config, opts *options) (*backend.ExternalInterface, error) {
	stack, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return nil, err
	}
	public := ipmatch.PublicIPOpts{PublicIP: opts.publicIP, PublicIPv6: opts.publicIPv6}
	type query struct{ name, regex, reaches string }
	var queries []query
	for _, name := range opts.interfaces {
		queries = append(queries, query{name: name})
	}
	for _, regex := range opts.interfaceRegexes {
		queries = append(queries, query{regex: regex})
	}
	if opts.interfaceCanReach != "" {
		queries = append(queries, query{reaches: opts.interfaceCanReach})
	}
	if len(queries) == 0 {
		name := opts.publicIP
		if name == "" {
			name = opts.publicIPv6
		}
		queries = []query{{name: name}}
	}
	var failed []error
	for _, q := range queries {
		found, err := ipmatch.LookupExtIface(q.name, q.regex, q.reaches, stack, public)
		if err == nil && found != nil {
			return found, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("failed to find any valid interface to use: %w", errors.Join(failed...))
}

// rules sets the packet filter's rules and keeps them, after those of the other kind (an earlier
// start may have been told otherwise) are gone.
func rules(ctx context.Context, config *subnet.Config, own *lease.Lease, opts *options) error {
	if err := traffic(!config.EnableNFTables).CleanUp(ctx); err != nil {
		return fmt.Errorf("cannot clean up the rules of the unused packet filter: %w", err)
	}
	filter := traffic(config.EnableNFTables)
	if err := filter.Init(ctx); err != nil {
		return err
	}
	if opts.ipMasq {
		before := readSubnetFile(opts.subnetFile)
		err := filter.SetupAndEnsureMasqRules(ctx,
			config.Network, before.v4("FLANNEL_SUBNET"), before.v4("FLANNEL_NETWORK"),
			config.IPv6Network, before.v6("FLANNEL_IPV6_SUBNET"), before.v6("FLANNEL_IPV6_NETWORK"),
			own, opts.resyncSeconds, opts.ipMasqNotRandom)
		if err != nil {
			return fmt.Errorf("failed to setup masq rules: %w", err)
		}
	}
	if opts.forwardRules {
		filter.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, opts.resyncSeconds)
	}
	return nil
}

func traffic(nft bool) trafficmngr.TrafficManager {
	if nft {
		return &nftables.NFTablesManager{}
	}
	return &iptables.IPTablesManager{}
}

// subnetFile is what the last start told the CNI plugin; empty where there was none.
type subnetFile map[string]string

func readSubnetFile(path string) subnetFile {
	file := subnetFile{}
	text, err := os.ReadFile(path)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			log.Errorf("Couldn't read the previous subnet file: %s", err)
		}
		return file
	}
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			file[key] = value
		}
	}
	return file
}

func (f subnetFile) v4(key string) (net ip.IP4Net) {
	if text := f[key]; text != "" {
		if err := net.UnmarshalJSON([]byte(`"` + text + `"`)); err != nil {
			log.Errorf("%s in the previous subnet file: %s", key, err)
		}
	}
	return net
}

func (f subnetFile) v6(key string) ip.IP6Net {
	net := ip.IP6Net{IP: (*ip.IP6)(big.NewInt(0))}
	if text := f[key]; text != "" {
		if err := net.UnmarshalJSON([]byte(`"` + text + `"`)); err != nil {
			log.Errorf("%s in the previous subnet file: %s", key, err)
		}
	}
	return net
}

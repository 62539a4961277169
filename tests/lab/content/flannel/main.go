// flanneld over flannel's own packages. Flannel's main imports every backend, one of which needs a
// cloud's SDK that the module proxy does not serve; this one has the vxlan and host-gw backends and
// the Kubernetes subnet manager, with flanneld's flags, files and probes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/hostgw"
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/subnet"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/version"
	log "k8s.io/klog/v2"
)

func main() {
	opts := parse(os.Args[1:])
	if opts.version {
		fmt.Fprintln(os.Stderr, version.Version)
		return
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, opts); err != nil && !errors.Is(err, context.Canceled) {
		log.Error(err)
		log.Flush()
		os.Exit(1)
	}
	log.Info("Exiting cleanly...")
}

// run brings the node's network up and holds it until ctx ends.
func run(parent context.Context, opts *options) error {
	ctx, cancel := context.WithCancel(parent)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()

	if !opts.kubeSubnetMgr {
		return errors.New("this flanneld has no etcd subnet manager: start it with --kube-subnet-mgr")
	}
	leases, err := kube.NewSubnetManager(ctx, opts.kubeAPIURL, opts.kubeconfig, opts.annotationPrefix,
		opts.netConf, opts.setNetworkUnavailable)
	if err != nil {
		return fmt.Errorf("cannot create the subnet manager: %w", err)
	}
	log.Infof("Created subnet manager: %s", leases.Name())

	health := &health{}
	if opts.healthzPort > 0 {
		if err := health.serve(ctx, &workers, opts); err != nil {
			return err
		}
	}
	config, err := networkConfig(ctx, leases)
	if err != nil {
		return err
	}
	if err := bridgesAreFiltered(config); err != nil {
		return err
	}
	network, err := register(ctx, &workers, leases, config, opts)
	if err != nil {
		return err
	}
	if err := rules(ctx, config, network.Lease(), opts); err != nil {
		return err
	}
	if opts.blackholeRoute {
		workers.Go(func() { blackholes(ctx, config, network, opts.resync()) })
	}
	lease := network.Lease()
	if err := leases.HandleSubnetFile(opts.subnetFile, config, opts.ipMasq, lease.Subnet, lease.IPv6Subnet, network.MTU()); err != nil {
		// The CNI plugin needs this file; as flanneld, go on: the next start writes it.
		log.Warningf("Failed to write subnet file: %s", err)
	} else {
		health.ready.Store(true)
	}
	log.Info("Running backend.")
	workers.Go(func() { network.Run(ctx) })
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		log.Errorf("Failed to notify systemd: %v", err)
	}
	if err := leases.CompleteLease(ctx, lease, &workers); err != nil {
		return fmt.Errorf("the lease ended: %w", err)
	}
	<-ctx.Done()
	return nil
}

// networkConfig asks once a second until there is a configuration.
func networkConfig(ctx context.Context, leases subnet.Manager) (*subnet.Config, error) {
	for {
		config, err := leases.GetNetworkConfig(ctx)
		if err == nil && config != nil {
			log.Infof("Found network config - Backend type: %s", config.BackendType)
			return config, nil
		}
		log.Errorf("Couldn't fetch network config: %v", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// bridgesAreFiltered refuses a host where pods' traffic through the bridge would pass no iptables rule.
func bridgesAreFiltered(config *subnet.Config) error {
	files := map[string]bool{
		"/proc/sys/net/bridge/bridge-nf-call-iptables":  config.EnableIPv4,
		"/proc/sys/net/bridge/bridge-nf-call-ip6tables": config.EnableIPv6,
	}
	for file, needed := range files {
		if !needed || config.EnableNFTables {
			continue
		}
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("failed to check br_netfilter: %w", err)
		}
	}
	return nil
}

// blackholes keeps what is in the node's own range and no pod's from leaving by the default route.
func blackholes(ctx context.Context, config *subnet.Config, network backend.Network, every time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		if config.EnableIPv4 {
			if err := ip.AddBlackholeV4Route(network.Lease().Subnet.ToIPNet()); err != nil {
				log.Errorf("Failed to setup blackhole route, %v", err)
			}
		}
		if config.EnableIPv6 {
			if err := ip.AddBlackholeV6Route(network.Lease().IPv6Subnet.ToIPNet()); err != nil {
				log.Errorf("Failed to setup blackhole route, %v", err)
			}
		}
	}
}

package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	log "k8s.io/klog/v2"
)

type options struct {
	version               bool
	kubeSubnetMgr         bool
	kubeAPIURL            string
	annotationPrefix      string
	kubeconfig            string
	interfaces            list
	interfaceRegexes      list
	interfaceCanReach     string
	ipMasq                bool
	ipMasqNotRandom       bool
	subnetFile            string
	publicIP              string
	publicIPv6            string
	healthzIP             string
	healthzPort           int
	resyncSeconds         int
	forwardRules          bool
	blackholeRoute        bool
	netConf               string
	setNetworkUnavailable bool
}

func (o *options) resync() time.Duration { return time.Duration(o.resyncSeconds) * time.Second }

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return fmt.Sprint(*l) }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// parse reads flanneld's flags, then FLANNELD_* for those that were not given.
func parse(arguments []string) *options {
	o := &options{}
	flags := flag.NewFlagSet("flannel", flag.ExitOnError)
	flags.BoolVar(&o.version, "version", false, "print version and exit")
	flags.BoolVar(&o.kubeSubnetMgr, "kube-subnet-mgr", false, "contact the Kubernetes API for subnet assignment instead of etcd")
	flags.StringVar(&o.kubeAPIURL, "kube-api-url", "", "Kubernetes API server URL; not needed in a pod")
	flags.StringVar(&o.annotationPrefix, "kube-annotation-prefix", "flannel.alpha.coreos.com", "prefix of the Nodes' annotations")
	flags.StringVar(&o.kubeconfig, "kubeconfig-file", "", "kubeconfig file; not needed in a pod")
	flags.Var(&o.interfaces, "iface", "interface (IP or name) for inter-host communication; may be repeated, first match wins")
	flags.Var(&o.interfaceRegexes, "iface-regex", "expression for the interface; may be repeated, after --iface")
	flags.StringVar(&o.interfaceCanReach, "iface-can-reach", "", "take the interface by which this address is reached")
	flags.BoolVar(&o.ipMasq, "ip-masq", false, "masquerade traffic that leaves the overlay network")
	flags.BoolVar(&o.ipMasqNotRandom, "ip-masq-fully-random-disable", false, "no fully random source ports when masquerading")
	flags.StringVar(&o.subnetFile, "subnet-file", "/run/flannel/subnet.env", "file that tells the CNI plugin subnet and MTU")
	flags.StringVar(&o.publicIP, "public-ip", "", "address by which other nodes reach this one")
	flags.StringVar(&o.publicIPv6, "public-ipv6", "", "IPv6 address by which other nodes reach this one")
	flags.StringVar(&o.healthzIP, "healthz-ip", "0.0.0.0", "address of the health server")
	flags.IntVar(&o.healthzPort, "healthz-port", 0, "port of the health server, 0: none")
	flags.IntVar(&o.resyncSeconds, "iptables-resync", 5, "seconds between checks of the rules")
	flags.BoolVar(&o.forwardRules, "iptables-forward-rules", true, "accept the pod network in the FORWARD chain")
	flags.BoolVar(&o.blackholeRoute, "ip-blackhole-route", false, "add a blackhole route for the node's own range")
	flags.StringVar(&o.netConf, "net-config-path", "/etc/kube-flannel/net-conf.json", "network configuration file")
	flags.BoolVar(&o.setNetworkUnavailable, "set-node-network-unavailable", true, "set NodeNetworkUnavailable when ready")

	log.InitFlags(nil)
	for _, name := range []string{"v", "vmodule", "log_backtrace_at"} {
		known := flag.Lookup(name)
		flags.Var(known.Value, known.Name, known.Usage)
	}
	if err := flags.Parse(arguments); err != nil {
		fail(err)
	}
	fromEnvironment(flags)
	return o
}

func fromEnvironment(flags *flag.FlagSet) {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	flags.VisitAll(func(f *flag.Flag) {
		name := "FLANNELD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value, set := os.LookupEnv(name); set && !given[f.Name] {
			if err := f.Value.Set(value); err != nil {
				fail(fmt.Errorf("%s: %w", name, err))
			}
		}
	})
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

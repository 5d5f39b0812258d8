// Command minicluster is the test cluster of lockkeeper's end-to-end tests:
// etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl,
// each the real thing, and kwok in the place of kubelets, in one binary.
//
// The first argument names the program, the rest are that program's own
// flags, so a test starts them just as it would start separate binaries:
//
//	minicluster etcd --data-dir …
//	minicluster kube-apiserver --etcd-servers …
//	minicluster kubectl get ns
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"lockkeeper.dev/minicluster/controlplane"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"
)

const programs = "etcd, kwok, " + controlplane.Programs

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintf(os.Stderr, "usage: minicluster PROGRAM [flags], where PROGRAM is one of %s\n", programs)
		os.Exit(2)
	}
	// Each program reads os.Args itself; it must see its own name first.
	os.Args = os.Args[1:]
	switch program := os.Args[0]; program {
	case "etcd":
		controlplane.Guard()
		etcdmain.Main(os.Args)
	case "kwok":
		controlplane.Guard()
		if err := runKwok(); err != nil {
			fmt.Fprintf(os.Stderr, "kwok: %v\n", err)
			os.Exit(1)
		}
	default:
		controlplane.Run(program)
		fmt.Fprintf(os.Stderr, "minicluster: no program %q; one of %s\n", program, programs)
		os.Exit(2)
	}
}

// runKwok does what kwok's own main does, which is in no package that can be imported.
func runKwok() error {
	// Where the other programs' packages have put flags of theirs; one clashes with kwok's.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	// Read before the command's own flags, and beside them.
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}

	ctx, _ := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		return err
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	return command.ExecuteContext(ctx)
}

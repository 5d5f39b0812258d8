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
	"io"
	"os"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"
)

// guardVariable makes a server end with the process that started it: the
// parent holds the write end of standard input, which closes however the
// parent dies.
const guardVariable = "MINICLUSTER_EXIT_WITH_STDIN"

const programs = "etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, kubectl"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintf(os.Stderr, "usage: minicluster PROGRAM [flags], where PROGRAM is one of %s\n", programs)
		os.Exit(2)
	}
	// Each program reads os.Args itself; it must see its own name first.
	os.Args = os.Args[1:]
	switch program := os.Args[0]; program {
	case "etcd":
		guard()
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		guard()
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		guard()
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		guard()
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kwok":
		guard()
		if err := runKwok(); err != nil {
			fmt.Fprintf(os.Stderr, "kwok: %v\n", err)
			os.Exit(1)
		}
	case "kubectl":
		command := cmd.NewDefaultKubectlCommand()
		if err := cli.RunNoErrOutput(command); err != nil {
			util.CheckErr(err)
		}
	default:
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

func guard() {
	if os.Getenv(guardVariable) == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
}

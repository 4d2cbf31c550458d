// Peers are the programs that the benchmarks compare with. One workload is one subcommand: it runs once, checks what it
// did, and prints one line of JSON, the name of each part of the workload with its Measure.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
)

// workload defines its flags and gives what runs once they are parsed.
type workload func(flags *flag.FlagSet) func() (measures, error)

// workloads is everything that this program can run; a file of this folder adds its own in an init function.
var workloads = map[string]workload{}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || workloads[args[0]] == nil {
		names := make([]string, 0, len(workloads))
		for name := range workloads {
			names = append(names, name)
		}
		slices.Sort(names)
		return fmt.Errorf("expected a workload, one of %v", names)
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	perform := workloads[args[0]](flags)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	measured, err := perform()
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return json.NewEncoder(os.Stdout).Encode(measured)
}

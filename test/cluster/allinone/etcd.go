package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

// runEtcd runs an etcd, configured by a YAML file in etcd's own format, until
// SIGINT or SIGTERM.
func runEtcd(args []string) error {
	if len(args) != 2 || args[0] != "--config-file" {
		return errors.New("usage: etcd --config-file FILE")
	}
	cfg, err := embed.ConfigFromFile(args[1])
	if err != nil {
		return err
	}
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer server.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	select {
	case err := <-server.Err():
		return err
	case <-stop:
		return nil
	}
}

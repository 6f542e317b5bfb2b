package onenode

import (
	"bytes"
	"embed"
	"encoding/base64"
	"fmt"
	"os"
	"text/template"
)

//go:embed templates
var templates embed.FS

// values are what the templates are filled in with.
type values struct {
	Run                             string
	APIPort, EtcdPort, EtcdPeerPort int
	KubeletPort, KubeletHealthzPort int
	PauseImage, CNIPlugins          string
	User, CA, Cert, Key             string
}

func (c *Cluster) values() values {
	return values{
		Run: c.run(), APIPort: APIPort, EtcdPort: etcdPort, EtcdPeerPort: etcdPeerPort,
		KubeletPort: kubeletPort, KubeletHealthzPort: kubeletHealthzPort,
		PauseImage: pauseImage, CNIPlugins: cniPlugins,
	}
}

// writeConfig fills in a template and writes it to path, readable by root alone.
func writeConfig(path, name string, v values) error {
	t, err := template.ParseFS(templates, "templates/"+name)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// writeKubeconfig writes a kubeconfig with the credentials of one identity inlined.
func (c *Cluster) writeKubeconfig(path, identity string) error {
	v := c.values()
	v.User = identity
	for file, field := range map[string]*string{"ca.crt": &v.CA, identity + ".crt": &v.Cert, identity + ".key": &v.Key} {
		b, err := os.ReadFile(c.pki(file))
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", identity, err)
		}
		*field = base64.StdEncoding.EncodeToString(b)
	}
	return writeConfig(path, "kubeconfig.yaml", v)
}

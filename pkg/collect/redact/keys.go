package redact

// secretName is an ending of names whose values are secrets. Case, "_", "-" and
// "." do not count.
type secretName struct {
	ending, kind string
}

// secretNames has longer endings before shorter ones that they end in.
var secretNames = []secretName{
	{"xamzsecuritytoken", kindAWSSession},
	{"awssessiontoken", kindAWSSession},
	{"sessiontoken", kindAWSSession},
	{"token", kindToken},
	{"clientsecret", kindSecret},
	{"secret", kindSecret},
	{"password", kindPassword},
	{"passwd", kindPassword},
	{"passphrase", kindPassword},
	{"secretaccesskey", kindAWSSecret},
	{"secretkey", kindAWSSecret},
	{"accesskeyid", kindAWSKeyID},
	{"accesskey", kindAPIKey},
	{"apikey", kindAPIKey},
	{"privatekey", kindPrivateKey},
	{"encryptionkey", kindAPIKey},
	{"fastopenkey", kindSecret}, // sysctl net.ipv4.tcp_fastopen_key
	{"clientkeydata", kindKubeconfig},
	{"clientcertificatedata", kindKubeconfig},
	{"authorization", kindAuthorization},
	{"xamzsignature", kindPresigned},
	{"xamzcredential", kindPresigned},
	{"xgoogsignature", kindPresigned},
	{"xgoogcredential", kindPresigned},
}

// lastLetters tells with one look that a name is none of them.
var lastLetters = func() *set {
	s := &set{}
	for _, n := range secretNames {
		c := n.ending[len(n.ending)-1]
		s[c], s[c-'a'+'A'] = true, true
	}
	return s
}()

// kindOf returns the kind of secret that a value with this name is.
func kindOf(name []byte) (string, bool) {
	if len(name) < 5 || !lastLetters[name[len(name)-1]] {
		return "", false
	}
	for i := range secretNames {
		if hasEnding(name, secretNames[i].ending) {
			return secretNames[i].kind, true
		}
	}
	return "", false
}

func hasEnding(name []byte, ending string) bool {
	j := len(ending) - 1
	for i := len(name) - 1; j >= 0; i-- {
		if i < 0 {
			return false
		}
		c := name[i]
		if c == '_' || c == '-' || c == '.' {
			continue
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != ending[j] {
			return false
		}
		j--
	}
	return true
}

// worth says whether a value is worth redacting: words that stand for no value are
// not, nor is what is redacted already.
func worth(kind string, v []byte) bool {
	if len(v) == 0 || len(v) > 16 {
		return len(v) > 0 && string(v[:min(len(v), len(prefix))]) != prefix
	}
	switch string(v) {
	case "true", "false", "null", "nil", "none", "None", "<nil>", "<none>", "{}", "[]", "0", "1",
		"|", ">", "|-", ">-", "***", "<redacted>", "REDACTED", "[REDACTED]", "DATA+OMITTED", "not", "is":
		return false
	}
	return kind == kindPassword || string(v[:min(len(v), len(prefix))]) != prefix
}

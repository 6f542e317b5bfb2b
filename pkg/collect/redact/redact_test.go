package redact

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
)

const (
	jwt    = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50In0.c2lnbmF0dXJl-_x"
	awsID  = "AKIAIOSFODNN7EXAMPLE"
	awsKey = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	pem    = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAsecretsecret\nMORESECRETLINES==\n-----END RSA PRIVATE KEY-----"
)

var tokenForm = regexp.MustCompile(`REDACTED-([a-z0-9-]+)-[0-9a-f]{8}`)

func TestSecretsAreReplacedAndTheRestStays(t *testing.T) {
	for name, tc := range map[string]struct {
		in string
		// want has "<kind>" where a token is expected.
		want string
	}{
		"kubeconfig token":         {"users:\n- name: a\n  user:\n    token: abc.def ghi\n", "users:\n- name: a\n  user:\n    token: <token>\n"},
		"kubeconfig key":           {"    client-key-data: TUlJQ2V3==\n    x: y\n", "    client-key-data: <kubeconfig>\n    x: y\n"},
		"kubeconfig certificate":   {"    client-certificate-data: TUlJQ2V3==\n", "    client-certificate-data: <kubeconfig>\n"},
		"kubeconfig authority":     {"    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t\n", "    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t\n"},
		"kubeconfig password":      {"    password: hunter2\n", "    password: <password>\n"},
		"JSON":                     {`{"token":"abc","n":1}`, `{"token":"<token>","n":1}`},
		"JSON with blanks":         {`{"db_password" : "a \" b", "n":1}`, `{"db_password" : "<password>", "n":1}`},
		"JSON in JSON":             {`{"log":"{\"secret\":\"s3cret\",\"n\":1}\n"}`, `{"log":"{\"secret\":\"<secret>\",\"n\":1}\n"}`},
		"environment":              {"A=1\nDB_PASSWORD=p,w;d)x\nB=2\n", "A=1\nDB_PASSWORD=<password>\nB=2\n"},
		"environment, lower case":  {"api_token=xyz next", "api_token=<token> next"},
		"unit file":                {`Environment="GITHUB_TOKEN=a b c" "B=2"`, `Environment="GITHUB_TOKEN=<token>" "B=2"`},
		"export":                   {"export AWS_SECRET_ACCESS_KEY=" + awsKey + "\n", "export AWS_SECRET_ACCESS_KEY=<aws-secret-key>\n"},
		"AWS credentials file":     {"aws_access_key_id = " + awsID + "\naws_secret_access_key = " + awsKey + "\naws_session_token = FwoGZXIvYXdzEBY\n", "aws_access_key_id = <aws-access-key>\naws_secret_access_key = <aws-secret-key>\naws_session_token = <aws-session-token>\n"},
		"AWS JSON":                 {`{"AccessKeyId":"ASIAIOSFODNN7EXAMPLE","SecretAccessKey":"` + awsKey + `","Token":"IQoJb3JpZ2luX2VjE"}`, `{"AccessKeyId":"<aws-access-key>","SecretAccessKey":"<aws-secret-key>","Token":"<token>"}`},
		"AWS key id in a sentence": {"signed by " + awsID + ".", "signed by <aws-access-key>."},
		"JWT":                      {"got " + jwt + ", ok", "got <jwt>, ok"},
		"header":                   {"Authorization: Bearer " + jwt + "\r\nHost: x\r\n", "Authorization: Bearer <authorization>\r\nHost: x\r\n"},
		"header, basic":            {"> authorization: Basic dXNlcjpwYXNz\n", "> authorization: Basic <authorization>\n"},
		"header, AWS":              {"Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/2015/us-east-1/iam/aws4_request, Signature=5d67", "Authorization: AWS4-HMAC-SHA256 <authorization>"},
		"header, Go map":           {"map[Authorization:[Bearer abcdef] Accept:[*/*]]", "map[Authorization:[Bearer <authorization>] Accept:[*/*]]"},
		"header, JSON":             {`{"Authorization":["Bearer abcdef"],"A":1}`, `{"Authorization":["Bearer <authorization>"],"A":1}`},
		"header, curl":             {"curl -H 'Authorization: Bearer abc' https://x", "curl -H 'Authorization: Bearer <authorization>' https://x"},
		"bearer without a header":  {"using Bearer abcdef0123456789abcdef now", "using Bearer <authorization> now"},
		"presigned URL":            {"PUT https://b.s3.amazonaws.com/k?X-Amz-Credential=AKIAX%2F2024&X-Amz-Date=20240101&X-Amz-Security-Token=FwoG%2B&X-Amz-Signature=abcdef HTTP/1.1", "PUT https://b.s3.amazonaws.com/k?X-Amz-Credential=<presigned-url>&X-Amz-Date=20240101&X-Amz-Security-Token=<aws-session-token>&X-Amz-Signature=<presigned-url> HTTP/1.1"},
		"presigned URL in a query": {"u=https%3A%2F%2Fb%3FX-Amz-Signature%3Dabcdef%26b%3D1", "u=https%3A%2F%2Fb%3FX-Amz-Signature%3D<presigned-url>%26b%3D1"},
		"password in a URL":        {"HTTP_PROXY=http://me:pa55@proxy:3128/", "HTTP_PROXY=http://me:<password>@proxy:3128/"},
		"private key":              {"a\n" + pem + "\nb\n", "a\n-----BEGIN RSA PRIVATE KEY-----\n<private-key>\n-----END RSA PRIVATE KEY-----\nb\n"},
		"private key in JSON":      {`{"k":"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n","n":1}`, `{"k":"-----BEGIN PRIVATE KEY-----<private-key>-----END PRIVATE KEY-----\n","n":1}`},
		"private key in base64":    {"x: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo= y", "x: <private-key> y"},
		"flag with a blank":        {"tool --db-password hunter2 --verbose", "tool --db-password <password> --verbose"},
		"flag in JSON":             {`["tool","--token","abc","--v"]`, `["tool","--token","<token>","--v"]`},
		"flag with =":              {"tool --token=abc --v", "tool --token=<token> --v"},
		"container env in JSON":    {`{"env":[{"name":"DB_PASSWORD","value":"x y"},{"name":"A","value":"b"}]}`, `{"env":[{"name":"DB_PASSWORD","value":"<password>"},{"name":"A","value":"b"}]}`},
		"container env in YAML":    {"- name: API_TOKEN\n  value: xyz\n- name: B\n  value: c\n", "- name: API_TOKEN\n  value: <token>\n- name: B\n  value: c\n"},
		"registry":                 {`{"auths":{"r":{"auth":"dXNlcjpwYXNzd29yZDEyMw=="}}}`, `{"auths":{"r":{"auth":"<registry-auth>"}}}`},
		"sysctl":                   {"net.ipv6.conf.all.stable_secret = 1:2:3\nnet.ipv4.tcp_fastopen_key = aa-bb\n", "net.ipv6.conf.all.stable_secret = <secret>\nnet.ipv4.tcp_fastopen_key = <secret>\n"},
		"flow YAML":                {"{password: abc, user: me}", "{password: <password>, user: me}"},
	} {
		t.Run(name, func(t *testing.T) {
			got, counts := New().String(tc.in)
			if plain := tokenForm.ReplaceAllString(got, "<$1>"); plain != tc.want {
				t.Errorf("\n in   %q\n got  %q\n want %q", tc.in, plain, tc.want)
			}
			sum := 0
			for _, n := range counts {
				sum += n
			}
			if want := strings.Count(got, "REDACTED-"); sum != want {
				t.Errorf("%d counted (%v), %d in the text", sum, counts, want)
			}
		})
	}
}

func TestOrdinaryTextIsNotTouched(t *testing.T) {
	for _, in := range []string{
		"",
		"E0102 15:04:05.678901    1234 reflector.go:150] failed to list *v1.Node: Unauthorized\n",
		"invalid bearer token: x509: certificate has expired or is not yet valid",
		`err="token: x509 is bad" pod="kube-system/aws-node-abcde"`,
		"authentication/authorization: RBAC: clusterrole not found",
		"automountServiceAccountToken: false\nserviceAccountToken:\n  path: token\n",
		"password: null\ntoken: \"\"\nsecret:\n  name: x\n",
		"AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/secrets/token",
		"--service-account-key-file=/etc/k8s/sa.pub --token-ttl 5m",
		"-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----\n",
		"AKIA and ASIA are prefixes; AKIAIOSFODNN7EXAMPLEX is too long",
		"eyJ is how JSON begins; eyJhbGciOi without dots is no web token",
		"http://host:8080/path https://[::1]:443/ user@host",
		"Environment=PASSWORD=${PASSWORD}\n",
		"passwd:         files systemd\nshadow: files\n",
		"kubectl ekslogs: token is REDACTED-token-12345678 now, token=REDACTED-token-12345678\n",
		"\xff\xfe\x00=\x00:\x00 --\x00 invalid",
	} {
		if got, counts := New().String(in); got != in || counts != nil {
			t.Errorf("\n in  %q\n got %q, %v", in, got, counts)
		}
	}
}

func TestSameSecretHasTheSameTokenWithinARedactorOnly(t *testing.T) {
	in := "password=hunter2\n{\"password\":\"hunter2\"}\npassword=other\n"
	r := New()
	got, _ := r.String(in)
	again, _ := r.String(in)
	other, _ := New().String(in)
	found := tokenForm.FindAllString(got, -1)
	if len(found) != 3 || found[0] != found[1] || found[0] == found[2] {
		t.Errorf("tokens %q: want the first two the same and the third another", found)
	}
	if got != again {
		t.Errorf("one Redactor, two answers:\n%s%s", got, again)
	}
	if got == other {
		t.Error("two Redactors use the same key")
	}
}

// Wherever the chunks of the input end, the output is the same.
func TestSecretsThatStraddleChunksAreFound(t *testing.T) {
	var in bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&in, "2026-01-01T00:00:00Z line %d level=info msg=\"nothing here\" x=%s\n", i, strings.Repeat("y", i%40))
		if i%7 == 0 {
			fmt.Fprintf(&in, "Authorization: Bearer %s\nDB_PASSWORD=hunter%d %s\n%s\n", jwt, i, awsID, pem)
		}
	}
	r := New()
	want, counts := r.String(in.String())
	if strings.Contains(want, "hunter") || strings.Contains(want, awsID) || strings.Contains(want, "MORESECRET") || strings.Contains(want, "eyJ") {
		t.Fatal("a secret is left")
	}
	for _, size := range []int{1, 7, 1000, 65537, bufSize - 1, bufSize, bufSize + 1} {
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := in.Bytes(); len(rest) > 0; {
			n := min(size, len(rest))
			if _, err := w.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want || !maps.Equal(w.Counts(), counts) {
			t.Errorf("chunks of %d bytes: another output than at once, counts %v, want %v", size, w.Counts(), counts)
		}
	}
}

// A secret is found at whatever distance from the end of the internal buffer.
func TestSecretsAtTheEdgeOfTheBufferAreFound(t *testing.T) {
	for _, secret := range []string{"x DB_PASSWORD=hunter22hunter22 y", "x " + jwt + " y", "x " + awsID + " y", pem, "Authorization: Bearer hunter22hunter22\n"} {
		for _, edge := range []int{bufSize, bufSize - lookahead, bufSize - lookahead - holdback} {
			for off := -len(secret) - 2; off <= 2; off++ {
				in := strings.Repeat("a b\n", (edge+off)/4) + strings.Repeat("z", (edge+off)%4) + "\n" + secret + "\n" + strings.Repeat("c d\n", 5000)
				got, counts := New().String(in)
				if len(counts) != 1 || strings.Contains(got, "hunter22") || strings.Contains(got, "eyJ") || strings.Contains(got, awsID) || strings.Contains(got, "MORESECRET") {
					t.Fatalf("%.30q at %d of edge %d: %v", secret, off, edge, counts)
				}
			}
		}
	}
}

func TestSecretsLongerThanTheBufferAreOneToken(t *testing.T) {
	long := strings.Repeat("s3cr3t", 200_000)
	for name, in := range map[string]string{
		"word":   "A_TOKEN=" + long + " end",
		"quoted": `{"password":"` + long + `", "b":1} end`,
		"jwt":    "eyJhbGciOiJSUzI1NiJ9." + long + "." + long + " end",
	} {
		got, counts := New().String(in)
		if strings.Contains(got, "s3cr3t") || len(got) > 100 || !strings.HasSuffix(got, " end") || len(counts) != 1 {
			t.Errorf("%s: %d bytes, %.80q, %v", name, len(got), got, counts)
		}
	}
}

func TestALineOfAMegabyteKeepsItsText(t *testing.T) {
	in := strings.Repeat("word ", 250_000) + "password=hunter2 " + strings.Repeat("word ", 250_000)
	got, _ := New().String(in)
	if want := len(in) - len("hunter2") + len("REDACTED-password-12345678"); len(got) != want {
		t.Errorf("%d bytes, want %d", len(got), want)
	}
}

func TestABeginLineWithoutAnEndCostsABoundedAmount(t *testing.T) {
	in := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("log line\n", 20_000)
	got, _ := New().String(in)
	if lost := len(in) - len(got); lost > maxPEM || lost < maxPEM/2 {
		t.Errorf("%d bytes lost, want at most %d", lost, maxPEM)
	}
}

func FuzzChunksDoNotMatter(f *testing.F) {
	f.Add([]byte("token: abc\npassword=\"x\\\"y\" "+jwt+"\n"+pem), 3)
	f.Add([]byte(`{"name":"A_TOKEN","value":"x"} --token a https://u:p@h `+awsID), 5)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		if size <= 0 || size > 1<<20 {
			size = 1
		}
		r := New()
		want, _ := r.String(string(in))
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := in; len(rest) > 0; {
			n := min(size, len(rest))
			if _, err := w.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("in chunks %q, at once %q", out.String(), want)
		}
	})
}

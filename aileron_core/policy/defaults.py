"""The rules that always hold, before a person's own: reads of the project, and files that hold secrets."""

from typing import Final

from aileron_core.policy.model import READING, TOOLS, Policy, Rule

SECRET_FILES: Final = (
    # environments
    ".env", ".env.*", "*.env", ".dev.vars", ".dev.vars.*", "local.settings.json",
    # private keys, and stores of them
    "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "*.ovpn",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".ssh/", ".gnupg/", ".password-store/",
    # logins of tools
    ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".mylogin.cnf",
    ".htpasswd", ".dockercfg", ".s3cfg", ".boto", ".vault-token", ".vault_pass*", "rclone.conf",
    ".credentials.json", "credentials.json", "client_secret*.json", "service-account*.json",
    "service_account*.json", "serviceAccountKey.json", "application_default_credentials.json",
    "kubeconfig", "*.kubeconfig", ".aws/", ".azure/", "**/.kube/config", "**/.docker/config.json",
    "**/.config/gcloud/", "**/.config/gh/hosts.yml", "**/.cargo/credentials*", "**/.gem/credentials",
    # what is called a secret, in a form that holds values rather than code
    "secret.json", "secret.toml", "secret.yaml", "secret.yml",
    "secrets.env", "secrets.ini", "secrets.json", "secrets.properties", "secrets.tfvars",
    "secrets.toml", "secrets.txt", "secrets.xml", "secrets.yaml", "secrets.yml",
    "*.tfstate", "*.tfstate.*",
)  # fmt: skip
"""Patterns (`aileron_core.path_patterns`) of files that no built-in tool touches."""

NO_SECRETS: Final = (
    ".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults",
    ".env.*.example", ".env.*.sample", ".env.*.template",
    "example.env", "sample.env", "template.env",
    "id_*.pub", "cacert.pem", "ca-bundle.pem", "*.pub.pem",
)  # fmt: skip
"""Of those, what is made to be shared."""


def rules_in_force(policy: Policy) -> tuple[Rule, ...]:
    """Return the rules that always hold, and those of *policy*."""
    secrets = Rule(
        tools=TOOLS,
        decision="deny",
        paths=SECRET_FILES,
        except_paths=(*NO_SECRETS, *policy.secret_exceptions),
        reason="files of this name may hold secrets",
    )
    reads = Rule(tools=READING, decision="allow", reason="reads inside the project are allowed")
    return (secrets, reads, *policy.rules)

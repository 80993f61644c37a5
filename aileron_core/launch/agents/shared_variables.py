"""Patterns of variables that several agents take: of the clouds that sell models, and of providers of nothing else."""

CLOUDS = (
    "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL*", "AWS_USE_*_ENDPOINT",
    "AWS_BEDROCK_*", "AZURE_OPENAI_*", "AZURE_COGNITIVE_SERVICES_*", "AZURE_API_KEY", "AZURE_RESOURCE_NAME",
    "CLOUD_ML_REGION", "GCLOUD_PROJECT", "GCP_LOCATION", "GCP_PROJECT*", "GOOGLE_CLOUD_*", "GOOGLE_VERTEX_*",
    "VERTEX_*",
)  # fmt: skip
"""A key for models alone, project, region and address."""
CLOUD_LOGINS = ("AWS_*", "AZURE_*", "CLOUDSDK_*", "GOOGLE_APPLICATION_CREDENTIALS")
"""What else of them an agent may log in with."""
PROVIDERS = (
    "302AI_*", "AI_GATEWAY_*", "AIHUBMIX_*", "ALIBABA_*", "ANTHROPIC_*", "ANT_LING_*", "AVIAN_*", "BASETEN_*",
    "CEREBRAS_*", "CHUTES_*", "COHERE_*", "DASHSCOPE_*", "DEEPINFRA_*", "DEEPSEEK_*", "FASTROUTER_*", "FIREWORKS_*",
    "FRIENDLI_*", "FUTURMIX_*", "GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_*", "GROQ_*", "HELICONE_*",
    "INCEPTION_*", "KIMI_*", "LITELLM_*", "LLAMA_*", "LLMGATEWAY_*", "LMSTUDIO_*", "META_*API_KEY", "MINIMAX_*",
    "MISTRAL_*", "MODELSCOPE_*", "MOONSHOT_*", "MORPH_*", "NANOGPT_*", "NANO_GPT_*", "NEBIUS_*", "NOVITA_*", "NVIDIA_API_KEY",
    "OLLAMA_*", "OPENAI_*", "OPENCODE_*", "OPENROUTER_*", "OVHCLOUD_API_KEY", "PERPLEXITY_*", "POE_API_KEY", "QWEN_*",
    "RADIUS_API_KEY", "REQUESTY_*", "ROUTSTR_*", "SCALEWAY_API_KEY", "SILICONFLOW_*", "STEPFUN_*", "SYNTHETIC_*",
    "TENSORIX_*", "TETRATE_*", "TOGETHER_*", "UPSTAGE_*", "VENICE_*", "XAI_*", "XIAOMI_*", "ZAI_*", "ZENMUX_*", "ZHIPU_*",
)  # fmt: skip
"""Key and address of a provider that sells nothing but models, or of which the variable is for models alone."""

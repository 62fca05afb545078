# The demonstration: the embedded model on the embedded questions, and its report.
#
#     docker build --tag hedge .
#     docker run --rm --volume "$PWD/out:/out" hedge        # then open out/report.html
#
# Any command of the package: docker run --rm hedge hedge list. With a GPU: docker run --gpus all ... lmms-eval --model hedge_hf ...
FROM python:3.12-slim
WORKDIR /hedge
COPY pyproject.toml setup.py setup.cfg constraints.txt README.md LICENSE ./
COPY hedge_tasks hedge_tasks
COPY models models
COPY tasks tasks
RUN apt-get update && apt-get install --yes --no-install-recommends libgl1 libglib2.0-0 && rm -rf /var/lib/apt/lists/* \
    && pip install --no-cache-dir --constraint constraints.txt '.[offline]'
ENV HF_HOME=/tmp/huggingface HEDGE_CACHE=/tmp/hedge
WORKDIR /out
VOLUME /out
CMD ["sh", "-c", "hedge run --model hedge_tiny --tasks hedge_demo --output_path results --log_samples && hedge report results --out report.html"]

# Scant's server on a CPU, for one machine or a platform that runs containers; see README, Deploying.
FROM python:3.12-slim AS build
# PyTorch's CPU build: the usual one brings gigabytes of CUDA.
ENV UV_TORCH_BACKEND=cpu UV_LINK_MODE=copy
RUN pip install --no-cache-dir uv
COPY . /src
RUN uv venv /opt/scant && uv pip install --python /opt/scant "/src[postgres]"
# What only compilers and the libraries' own tests need is a fifth of it.
RUN find /opt/scant -type d \( -name tests -o -path '*/torch/test' -o -path '*/torch/include' -o -path '*/torch/bin' -o -path '*/pyarrow/include' \) -prune -exec rm -r {} +

FROM python:3.12-slim
COPY --from=build /opt/scant /opt/scant
RUN useradd --create-home --uid 1000 scant && install -d -o scant /data
USER scant
WORKDIR /home/scant
ENV PATH=/opt/scant/bin:$PATH PORT=5006 SCANT_DATA_DIR=/data PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 5006
HEALTHCHECK --start-period=30s --interval=10s --timeout=5s CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
CMD ["scant", "serve", "--address", "0.0.0.0"]

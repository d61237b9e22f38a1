"""From phoneme tokens to durations and text features."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from container.engine.network.layers import STYLE, BiLstm, Conv
from container.engine.network.valid import Valid

HIDDEN = 512
ALBERT_HIDDEN, ALBERT_EMBEDDING, ALBERT_INTERMEDIATE = 768, 128, 2048
ALBERT_LAYERS, ALBERT_HEADS, ALBERT_POSITIONS, ALBERT_EPS = 12, 12, 512, 1e-12
LONGEST_DURATION = 50


class AlbertEmbeddings(nn.Module):
    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(tokens, ALBERT_EMBEDDING)
        self.position_embeddings = nn.Embedding(ALBERT_POSITIONS, ALBERT_EMBEDDING)
        self.token_type_embeddings = nn.Embedding(2, ALBERT_EMBEDDING)
        self.LayerNorm = nn.LayerNorm(ALBERT_EMBEDDING, eps=ALBERT_EPS)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = self.position_embeddings.weight[: tokens.shape[1]]
        return self.LayerNorm(self.word_embeddings(tokens) + self.token_type_embeddings.weight[0] + positions)


class AlbertAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(ALBERT_HIDDEN, ALBERT_HIDDEN)
        self.key = nn.Linear(ALBERT_HIDDEN, ALBERT_HIDDEN)
        self.value = nn.Linear(ALBERT_HIDDEN, ALBERT_HIDDEN)
        self.dense = nn.Linear(ALBERT_HIDDEN, ALBERT_HIDDEN)
        self.LayerNorm = nn.LayerNorm(ALBERT_HIDDEN, eps=ALBERT_EPS)

    def forward(self, x: Tensor, keys: Tensor | None) -> Tensor:
        query, key, value = (
            projection(x).unflatten(-1, (ALBERT_HEADS, -1)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=keys)
        return self.LayerNorm(x + self.dense(context.transpose(1, 2).flatten(2)))


class AlbertLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = AlbertAttention()
        self.ffn = nn.Linear(ALBERT_HIDDEN, ALBERT_INTERMEDIATE)
        self.ffn_output = nn.Linear(ALBERT_INTERMEDIATE, ALBERT_HIDDEN)
        self.full_layer_layer_norm = nn.LayerNorm(ALBERT_HIDDEN, eps=ALBERT_EPS)

    def forward(self, x: Tensor, keys: Tensor | None) -> Tensor:
        x = self.attention(x, keys)
        return self.full_layer_layer_norm(self.ffn_output(F.gelu(self.ffn(x), approximate="tanh")) + x)


class Albert(nn.Module):
    """The text encoder: one layer applied twelve times; padded tokens are masked as keys."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.embeddings = AlbertEmbeddings(tokens)
        self.projection = nn.Linear(ALBERT_EMBEDDING, ALBERT_HIDDEN)
        self.layer = AlbertLayer()

    def forward(self, tokens: Tensor, valid: Valid) -> Tensor:
        keys = None if valid.mask is None else valid.mask.bool().view(len(tokens), 1, 1, -1)
        x = self.projection(self.embeddings(tokens))
        for _ in range(ALBERT_LAYERS):
            x = self.layer(x, keys)
        return x


class AdaptiveLayerNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, HIDDEN * 2)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        gain, bias = self.fc(style).unsqueeze(1).chunk(2, -1)
        return (1 + gain) * F.layer_norm(x, (HIDDEN,)) + bias


class DurationEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        pairs = [(BiLstm(HIDDEN + STYLE, HIDDEN), AdaptiveLayerNorm()) for _ in range(3)]
        self.lstms = nn.ModuleList(module for pair in pairs for module in pair)

    def forward(self, x: Tensor, style: Tensor, valid: Valid) -> Tensor:
        styles = style.unsqueeze(1).expand(-1, x.shape[1], -1)
        x = valid.zero_padding(torch.cat([x, styles], -1))
        for lstm, norm in zip(self.lstms[::2], self.lstms[1::2], strict=True):
            x = valid.zero_padding(torch.cat([norm(lstm(x, valid), style), styles], -1))
        return x


class ChannelNorm(nn.Module):
    """Layer norm with the checkpoint's parameter names."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(HIDDEN))
        self.beta = nn.Parameter(torch.empty(HIDDEN))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, (HIDDEN,), self.gamma, self.beta)


class TextEncoder(nn.Module):
    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, HIDDEN)
        self.cnn = nn.ModuleList(
            nn.Sequential(Conv(HIDDEN, HIDDEN, 5), ChannelNorm(), nn.LeakyReLU(0.2)) for _ in range(3)
        )
        self.lstm = BiLstm(HIDDEN, HIDDEN)

    def forward(self, tokens: Tensor, valid: Valid) -> Tensor:
        x = valid.zero_padding(self.embedding(tokens))
        for block in self.cnn:
            x = valid.zero_padding(block(x))
        return self.lstm(x, valid)

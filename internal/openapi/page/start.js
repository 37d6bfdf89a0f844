// A file of its own, so that the page can do without inline scripts.
'use strict';

// Tokens and keys that people enter are for this visit: they are not kept, nor are those that an earlier version kept.
try {
  localStorage.removeItem('authorized');
} catch {
  // A browser that keeps nothing has nothing to remove.
}

const page = document.getElementById('swagger-ui');

window.ui = SwaggerUIBundle({
  // Relative to the page, which stands one level below the description, under whatever prefix.
  url: new URL(page.dataset.description, window.location.href).href,
  dom_id: '#swagger-ui',
  persistAuthorization: false,
  deepLinking: true,
  docExpansion: 'list',
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 1,
  showExtensions: true,
  showCommonExtensions: true,
  validatorUrl: null,
  layout: 'StandaloneLayout',
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  plugins: [SwaggerUIBundle.plugins.DownloadUrl],
});
